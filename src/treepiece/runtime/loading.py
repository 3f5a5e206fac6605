"""Opens a runtime bundle: everything in it is read and checked before the first parse."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treepiece.bundle import CONFIG, RUNTIME, WEIGHTS, Bundle, find_graphs, read_bundle
from treepiece.decoding.types import DecodingConfig
from treepiece.definition import (
    Definition,
    ModelKind,
    load_decoding,
    load_definition,
    load_dictionary,
    load_scope,
    load_subwords,
    naming_file,
    read_number,
)
from treepiece.errors import BundleError
from treepiece.runtime.onnx_baselines import AutoregressiveRuntime, NonAutoregressiveRuntime
from treepiece.runtime.onnx_scorer import TreePieceRuntime
from treepiece.runtime.sessions import (
    FOLDER,
    LARGE,
    Graphs,
    Precision,
    Signature,
    graph_file,
    graph_names,
    open_graph,
    precisions_in,
)
from treepiece.scope import ScopeClassifier
from treepiece.spelling import Dictionary
from treepiece.text import SubwordTokenizer

RuntimeModel = TreePieceRuntime | AutoregressiveRuntime | NonAutoregressiveRuntime
"""Any of the three parsers on ONNX Runtime."""
_RUNTIMES: dict[ModelKind, type[RuntimeModel]] = {
    ModelKind.TREEPIECE: TreePieceRuntime,
    ModelKind.AR: AutoregressiveRuntime,
    ModelKind.NAR: NonAutoregressiveRuntime,
}


def graph_signatures(definition: Definition, width: int) -> dict[str, Signature]:
    """Return the signatures of a model's graphs, by name; `width` is the encoder's."""
    return _RUNTIMES[definition.kind].signatures(definition, width)


@dataclass(frozen=True)
class LoadedBundle:
    """The contents of a bundle. Only `in_one_thread` reads from the folder again: it opens the graphs."""

    bundle: Bundle
    precision: Precision
    definition: Definition
    subwords: SubwordTokenizer
    dictionary: Dictionary | None
    scope: ScopeClassifier | None
    decoding: DecodingConfig
    metadata: Mapping[str, Any]
    graphs: Graphs

    def model(self) -> RuntimeModel:
        """Return the model that runs the graphs."""
        return _RUNTIMES[self.definition.kind](self.definition, self.graphs, self.decoding)

    def model_in_one_thread(self) -> RuntimeModel:
        """Return a model that runs on one thread, so that several can run in parallel."""
        single = {name: open_graph(self.bundle, self.precision, name, 1) for name in self.graphs if name in LARGE}
        return _RUNTIMES[self.definition.kind](self.definition, {**self.graphs, **single}, self.decoding)


def load_bundle(
    folder: str | Path, *, precision: Precision | None, threads: int, decoding: DecodingConfig | None = None
) -> LoadedBundle:
    """Return a bundle that has graphs, in the given precision, by default the fastest that the bundle has.

    Raise if something in it is damaged or invalid; the error names the file and the key.
    """
    bundle = open_bundle(folder)
    precision = _choose_precision(bundle, precision)
    # Opening the graphs takes most of the time, so it runs in the background.
    with ThreadPoolExecutor(2, "treepiece-open") as pool:
        opened = {
            name: pool.submit(open_graph, bundle, precision, name, threads) for name in graph_names(bundle, precision)
        }
        definition, subwords = load_definition(bundle), load_subwords(bundle)
        dictionary, scope = load_dictionary(bundle), load_scope(bundle)
        decoding = decoding or load_decoding(bundle)
        with naming_file(bundle, CONFIG):
            signatures = graph_signatures(definition, read_number(bundle, "encoder", "hidden_size"))
    graphs = {}
    for name, signature in signatures.items():
        file = graph_file(precision, name)
        if name not in opened:
            raise BundleError(f"{bundle.folder}: the bundle has no {file}; export the model again")
        graphs[name] = opened[name].result()
        signature.check(graphs[name], bundle.folder / file)
    metadata = bundle.read_json(RUNTIME)
    return LoadedBundle(bundle, precision, definition, subwords, dictionary, scope, decoding, metadata, graphs)


def open_bundle(folder: str | Path) -> Bundle:
    """Return a bundle that has graphs. Its small files are checked now, graphs when they are read, weights never."""
    bundle = read_bundle(find_graphs(folder), check=False)
    if not precisions_in(bundle):
        raise BundleError(
            f"{bundle.folder}: a trained model without graphs: export it with `treepiece export --model "
            f"{bundle.folder} --output BUNDLE`"
        )
    bundle.check(except_for=(WEIGHTS, f"{FOLDER}/"))
    return bundle


def _choose_precision(bundle: Bundle, wanted: Precision | None) -> Precision:
    there = precisions_in(bundle)
    if wanted is not None and wanted not in there:
        raise BundleError(
            f"{bundle.folder}: no graphs in {wanted}: the bundle has {', '.join(there)}: use these, or export the "
            "model again"
        )
    return wanted or there[0]
