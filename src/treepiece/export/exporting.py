"""A trained model as a bundle for the runtime."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from treepiece.bundle import CARD, CONFIG, RUNTIME, SUBWORDS, TOKENIZER, TRAINING, read_bundle, write_bundle
from treepiece.decoding.parse import Parse
from treepiece.errors import OptionError
from treepiece.export.card import Card
from treepiece.export.checking import (
    LEAST_AGREEMENT,
    Parity,
    Quality,
    check_parity,
    measure,
    parse_with_graphs,
    parse_with_torch,
)
from treepiece.export.graphs import Graph, to_onnx
from treepiece.export.linear import autoregressive_graphs, non_autoregressive_graphs
from treepiece.export.outliers import tame_outliers
from treepiece.export.quantize import quantize, to_bytes
from treepiece.export.treepiece import treepiece_graphs
from treepiece.export.weights import Weights, weight_files
from treepiece.models.ar import AutoregressiveModel
from treepiece.models.trained import TrainedModel, load_model
from treepiece.models.treepiece import TreePieceModel
from treepiece.runtime.graphs import Precision, as_ids, graph_file
from treepiece.runtime.parser import Parser
from treepiece.training.examples import Example

T = TypeVar("T")

CHECKED = 1000
"""How many rows PyTorch and the graphs are compared on; scores and temperatures are measured on all."""
SAMPLED = 64
"""How many rows are looked at for large values before rounding to 8 bits."""


class Observer(Protocol):
    """Is told how an export goes on."""

    def on_stage(self, name: str, total: int) -> None:
        """A stage of `total` steps begins."""

    def on_step(self, done: int) -> None:
        """So many steps of the stage are done."""


@dataclass(frozen=True)
class ExportOptions:
    """What is exported: graphs in which precisions, which weights, and what only people know for the model card.

    `licence` is a line on the data and its licence, `notes` are Markdown with all that needs more room.
    """

    precisions: Sequence[Precision] = (Precision.FLOAT, Precision.INT8)
    weights: Weights = Weights.NONE
    licence: str = ""
    notes: str = ""
    least_agreement: float = LEAST_AGREEMENT

    def __post_init__(self) -> None:
        if not self.precisions and self.weights is Weights.NONE:
            raise OptionError("there is nothing to export: give graphs in float or int8, or --weights float or half")


@dataclass(frozen=True)
class Exported:
    """What was found out on the way: of graphs by their precision, of weights as `weights-float` or `weights-half`."""

    parities: dict[str, Parity] = field(default_factory=dict)
    qualities: dict[str, Quality] = field(default_factory=dict)


def export_model(
    source: Path,
    output: Path,
    examples: Sequence[Example],
    observer: Observer,
    options: ExportOptions | None = None,
    *,
    data: str = "",
) -> Exported:
    """Write a bundle with graphs or weights, if they answer as the trained model does on the examples.

    `data` names where the examples come from; without it they are for the comparison only, not for scores.
    """
    options = options or ExportOptions()
    trained = load_model(source)
    trained.model.to("cpu")
    bundle = read_bundle(source, check=False)
    files = {name: bundle.read(name) for name in _carried_over(bundle.files)}
    files |= weight_files(trained, options.weights)
    files |= _graph_files(trained, options.precisions, observer, _spread(examples, SAMPLED))
    facts: dict[str, Any] = {"longest": trained.subwords.longest}
    if isinstance(trained.model, TreePieceModel):
        facts["sure"] = float(trained.model.sure)
    with tempfile.TemporaryDirectory() as draft:
        write_bundle(Path(draft), str(trained.definition.kind), {**files, RUNTIME: json.dumps(facts).encode()})
        exported = _check(trained, Path(draft), examples, observer, options, is_scored=bool(data))
    runtime = {
        **facts,
        "data": data,
        "temperatures": {name: quality.temperatures.to_json() for name, quality in exported.qualities.items()},
        "parity": {name: asdict(parity) for name, parity in exported.parities.items()},
        "quality": {name: quality.to_json() for name, quality in exported.qualities.items()},
    }
    card = Card(
        trained.definition,
        trained.facts,
        trained.subwords.longest,
        exported.parities,
        exported.qualities,
        data,
        options.licence,
        options.notes,
    )
    files |= {RUNTIME: json.dumps(runtime, indent=1).encode(), CARD: card.to_markdown().encode()}
    write_bundle(output, str(trained.definition.kind), files)
    return exported


def _carried_over(names: Iterable[str]) -> list[str]:
    """Return the files of a trained model that its runtime needs too."""
    return [name for name in names if name in (CONFIG, TRAINING, SUBWORDS) or name.startswith(f"{TOKENIZER}/")]


def model_graphs(trained: TrainedModel) -> dict[str, Graph]:
    """Return the graphs of a model by name."""
    model = trained.model
    if isinstance(model, TreePieceModel):
        return treepiece_graphs(model)
    if isinstance(model, AutoregressiveModel):
        return autoregressive_graphs(model)
    return non_autoregressive_graphs(model)


def _graph_files(
    trained: TrainedModel, precisions: Sequence[Precision], observer: Observer, sample: Sequence[Example]
) -> dict[str, bytes]:
    if not precisions:
        return {}
    graphs = model_graphs(trained)
    observer.on_stage("writing graphs", len(graphs))
    files = {}
    for done, (name, graph) in enumerate(graphs.items(), start=1):
        exact = to_onnx(graph)
        for precision in precisions:
            model = exact if precision is Precision.FLOAT else quantize(tame_outliers(exact, _feeds(graph, sample)))
            files[graph_file(precision, name)] = to_bytes(model)
        observer.on_step(done)
    return files


def _feeds(graph: Graph, sample: Sequence[Example]) -> list[dict[str, npt.NDArray[Any]]]:
    """Return inputs with which to see how large values get: utterances, if the graph reads any, and all allowed."""
    if "ids" not in graph.inputs:
        return []
    others = {
        name: np.ones((1, *example.shape[1:]), bool) for name, (example, _) in graph.inputs.items() if name != "ids"
    }
    return [{"ids": as_ids([example.subwords.ids]), **others} for example in sample]


def _spread(items: Sequence[T], n: int) -> Sequence[T]:
    """Return about `n` items from all over."""
    return items[:: max(1, len(items) // n)]


def _check(
    trained: TrainedModel,
    folder: Path,
    examples: Sequence[Example],
    observer: Observer,
    options: ExportOptions,
    *,
    is_scored: bool,
) -> Exported:
    """Return how the graphs and weights in a folder compare with the trained model, and what they score."""
    utterances = [example.subwords for example in examples]
    compared = _spread(utterances, CHECKED)
    observer.on_stage("parsing with PyTorch", len(compared))
    wanted = parse_with_torch(trained, compared, observer.on_step)
    exported = Exported()

    def judge(parses: Sequence[Parse], precision: str, what: str) -> None:
        name = precision if what == "graphs" else f"{what}-{precision}"
        found = _spread(parses, CHECKED)
        exported.parities[name] = check_parity(wanted, found, precision, options.least_agreement, what=what)
        if is_scored:
            exported.qualities[name] = measure(examples, parses)

    for precision in options.precisions:
        parser = Parser.load(folder, precision=precision)
        observer.on_stage(f"parsing in {precision}", len(utterances))
        judge(parse_with_graphs(parser, utterances, observer.on_step), precision, "graphs")
    if options.weights is not Weights.NONE:
        kept = load_model(folder)
        kept.model.to("cpu")
        observer.on_stage(f"parsing with the weights in {options.weights}", len(utterances))
        judge(parse_with_torch(kept, utterances, observer.on_step), options.weights, "weights")
    return exported
