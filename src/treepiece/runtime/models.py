"""The parts of a runtime bundle: what the model is, how it reads text, and its graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from treepiece.bundle import CONFIG, RUNTIME, SUBWORDS, TOKENIZER, Bundle, read_bundle
from treepiece.decoding.parse import Parse
from treepiece.decoding.ranking import SURE
from treepiece.definition import Definition, ModelKind
from treepiece.errors import BundleError, TextError
from treepiece.runtime.ar import AutoregressiveRuntime
from treepiece.runtime.confidence import Temperatures
from treepiece.runtime.graphs import ENCODE, PARSE, Graphs, Precision, precisions_in
from treepiece.runtime.nar import NonAutoregressiveRuntime
from treepiece.runtime.treepiece import TreePieceRuntime
from treepiece.shipped import find_graphs
from treepiece.text import SubwordTokenizer
from treepiece.tokenizer.tokenizer import TreePieceTokenizer


class RuntimeModel(Protocol):
    """Any of the three parsers on ONNX Runtime."""

    graphs: Graphs

    def parse(self, ids: npt.NDArray[np.int64], *, beam: int = 1) -> list[list[Parse]]:
        """Return up to `beam` parses of each utterance, the most probable first. Shape: ids (batch, n)."""


_MODELS: dict[ModelKind, Callable[[Definition, Graphs], RuntimeModel]] = {
    ModelKind.TREEPIECE: TreePieceRuntime,
    ModelKind.AR: AutoregressiveRuntime,
    ModelKind.NAR: NonAutoregressiveRuntime,
}


def open_bundle(folder: str | Path) -> Bundle:
    """Return a bundle that has graphs; its files are checked as they are read."""
    bundle = read_bundle(find_graphs(folder), check=False)
    if not precisions_in(bundle):
        raise BundleError(
            f"{bundle.folder}: a trained model without graphs: make it ready with `treepiece export {bundle.folder} "
            "--output BUNDLE`"
        )
    return bundle


def choose_precision(bundle: Bundle, wanted: Precision | None) -> Precision:
    """Return the wanted precision, or the fastest that a bundle has."""
    there = precisions_in(bundle)
    if wanted is None:
        return there[0]
    if wanted not in there:
        raise BundleError(
            f"{bundle.folder}: no graphs in {wanted}: the bundle has {', '.join(there)}: ask for that, or export the "
            "model again"
        )
    return wanted


def first_graph(bundle: Bundle) -> str:
    """Return the name of the graph that every parse begins with."""
    return ENCODE if bundle.kind == ModelKind.AR else PARSE


def load_definition(bundle: Bundle) -> Definition:
    """Return what the model of a bundle is."""
    config = bundle.read_json(CONFIG)
    if not isinstance(config.get("model"), dict):
        raise BundleError(f"{bundle.folder / CONFIG}: damaged: 'model' is missing; copy or export the model again")
    tokenizer = None
    if bundle.kind == ModelKind.TREEPIECE:
        bundle.check_folder(TOKENIZER)
        tokenizer = TreePieceTokenizer.load(bundle.folder / TOKENIZER)
    return Definition.from_json(config["model"], tokenizer)


def load_facts(bundle: Bundle) -> Mapping[str, Any]:
    """Return what was found out when the model was exported."""
    return bundle.read_json(RUNTIME)


def load_subwords(bundle: Bundle, facts: Mapping[str, Any]) -> SubwordTokenizer:
    """Return the subword tokenizer of a bundle."""
    longest = facts.get("longest")
    if type(longest) is not int:
        raise BundleError(f"{bundle.folder / RUNTIME}: damaged: 'longest' is missing; export the model again")
    try:
        return SubwordTokenizer(bundle.read(SUBWORDS).decode(), longest=longest)
    except (TextError, UnicodeDecodeError) as error:
        raise BundleError(f"{bundle.folder / SUBWORDS}: {error}") from None


def load_temperatures(facts: Mapping[str, Any], precision: Precision) -> Temperatures:
    """Return the temperatures that were fitted for a precision; 1 where none were."""
    found = facts.get("temperatures", {})
    return Temperatures.from_json(found[precision]) if precision in found else Temperatures()


def load_sureness(facts: Mapping[str, Any]) -> float:
    """Return how probable a tree has to be to need no second look; the default where none was fitted."""
    sure = facts.get("sure", SURE)
    if not isinstance(sure, int | float):
        raise BundleError(f"{RUNTIME}: damaged: 'sure' must be a number, found {sure!r}; export the model again")
    return float(sure)


def make_model(definition: Definition, graphs: Graphs, facts: Mapping[str, Any]) -> RuntimeModel:
    """Return the parser of a definition, on graphs, with what was found out when it was exported."""
    model = _MODELS[definition.kind](definition, graphs)
    if isinstance(model, TreePieceRuntime):
        model.sure = load_sureness(facts)
    return model
