"""A trained model as a bundle for the runtime: graphs, and on request PyTorch's weights for further training."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar, assert_never

import numpy.typing as npt
import torch

from treepiece.bundle import (
    CARD,
    CONFIG,
    DECODING,
    DICTIONARY,
    RUNTIME,
    SCOPE,
    SUBWORDS,
    TOKENIZER,
    TRAINING,
    WEIGHTS,
    read_bundle,
    write_bundle,
)
from treepiece.data.examples import Example
from treepiece.data.toy import toy_frames
from treepiece.errors import BundleError, OptionError
from treepiece.export.baseline_graphs import Encode, Parallel, Step
from treepiece.export.card import Card
from treepiece.export.graph_modules import Graph, to_onnx
from treepiece.export.parity import (
    LEAST_AGREEMENT,
    Parity,
    Quality,
    check_parity,
    measure,
    parse_with_graphs,
    parse_with_torch,
)
from treepiece.export.quantization import quantize, smooth_activations, to_bytes
from treepiece.export.treepiece_graphs import treepiece_modules
from treepiece.models.baselines import AutoregressiveModel, NonAutoregressiveModel
from treepiece.models.trained import TrainedModel, load_model, write_weights
from treepiece.models.treepiece_model import TreePieceModel
from treepiece.progress import NoProgress, Progress
from treepiece.runtime.loading import graph_signatures
from treepiece.runtime.parser import Parser
from treepiece.runtime.sessions import ENCODE, PARSE, STEP, Precision, as_ids, graph_file
from treepiece.text import Subwords

T = TypeVar("T")

CHECKED = 1000
"""The number of rows to compare with PyTorch. All rows are scored."""
SAMPLED = 64
"""The number of utterances that calibrate the smoothing of activations for int8."""
_TOY_UTTERANCES = 200
_CARRIED_OVER = (CONFIG, DECODING, TRAINING, SUBWORDS, DICTIONARY, SCOPE, f"{TOKENIZER}/")
"""The files of a trained model that the runtime needs too."""


class Weights(StrEnum):
    """Which weights a bundle keeps: none, those of training, or those rounded to half precision."""

    NONE = "none"
    FLOAT = "float"
    HALF = "half"


@dataclass(frozen=True)
class ExportOptions:
    """What to export.

    `precisions` are those of the graphs; `licence` (one line) and `notes` (Markdown) go into the model card.
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
    """The measurements of an export, by precision; those of weights as `weights-float` or `weights-half`."""

    parities: dict[str, Parity] = field(default_factory=dict)
    qualities: dict[str, Quality] = field(default_factory=dict)


def export_model(
    source: Path,
    output: Path,
    examples: Sequence[Example] = (),
    *,
    data: str = "",
    calibration: Sequence[Subwords] = (),
    options: ExportOptions | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write a bundle with graphs or weights, if they give the results of the trained model; return how they compare.

    Args:
        source: The folder of the trained model.
        output: The folder to write.
        examples: Rows to score the graphs on; nothing is fitted to them.
        data: What the model card calls these rows.
        calibration: Utterances to measure the range of activations on, for int8; by default those of the toy data.
        options: What to export.
        progress: Receives reports.
    """
    options, progress = options or ExportOptions(), progress or NoProgress()
    trained = load_model(source)
    trained.model.to("cpu")
    toy = trained.subwords.encode_batch([frame.utterance for frame in toy_frames(_TOY_UTTERANCES)])
    bundle = read_bundle(source, check=False)
    files = {name: bundle.read(name) for name in bundle.files if name.startswith(_CARRIED_OVER)}
    files |= weight_files(trained, options.weights)
    files |= _graph_files(trained, options.precisions, _spread(calibration or toy, SAMPLED), progress)
    with tempfile.TemporaryDirectory() as draft:
        write_bundle(Path(draft), str(trained.definition.kind), {**files, RUNTIME: b"{}"})
        exported = _check(trained, Path(draft), examples, toy, options, progress)
    runtime = {
        "data": data,
        "parity": {name: asdict(parity) for name, parity in exported.parities.items()},
        "quality": {name: asdict(quality) for name, quality in exported.qualities.items()},
    }
    card = Card(
        trained.definition,
        trained.metadata,
        trained.decoding,
        trained.subwords.max_length,
        exported.parities,
        exported.qualities,
        data,
        options.licence,
        options.notes,
    )
    files |= {RUNTIME: json.dumps(runtime, indent=1).encode(), CARD: card.to_markdown().encode()}
    write_bundle(output, str(trained.definition.kind), files)
    return exported


def weight_files(trained: TrainedModel, weights: Weights) -> dict[str, bytes]:
    """Return the file of the weights, if any are kept; raise if half precision would turn a number into infinity.

    Rounding is idempotent, so a model that was read in half precision is written unchanged.
    """
    if weights is Weights.NONE:
        return {}
    if weights is Weights.FLOAT:
        return {WEIGHTS: write_weights(trained.model)}
    largest = torch.finfo(torch.float16).max
    for name, tensor in trained.model.state_dict().items():
        worst = float(tensor.abs().max()) if tensor.is_floating_point() and tensor.numel() else 0.0
        if not worst <= largest:
            raise BundleError(
                f"the weight {name} has the number {worst:g}, half precision ends at {largest:,.0f}; nothing was "
                "written: keep the weights with --weights float"
            )
    return {WEIGHTS: write_weights(trained.model, torch.float16)}


@torch.no_grad()
def model_graphs(trained: TrainedModel) -> dict[str, Graph]:
    """Return the graphs of a model by name."""
    model, definition = trained.model, trained.definition
    if isinstance(model, TreePieceModel):
        modules = treepiece_modules(model)
    elif isinstance(model, AutoregressiveModel):
        modules = {ENCODE: Encode(model), STEP: Step(model.decoder)}
    elif isinstance(model, NonAutoregressiveModel):
        modules = {PARSE: Parallel(model)}
    else:
        assert_never(model)
    signatures = graph_signatures(definition, model.encoder.width)
    n_symbols = definition.token_vocabulary().first_pointer
    return {name: Graph(module, signatures[name], n_symbols) for name, module in modules.items()}


def _graph_files(
    trained: TrainedModel, precisions: Sequence[Precision], sample: Sequence[Subwords], progress: Progress
) -> dict[str, bytes]:
    files = {}
    graphs = model_graphs(trained) if precisions else {}
    for done, (name, graph) in enumerate(graphs.items()):
        progress.update("writing graphs", done, len(graphs), name)
        exact = to_onnx(graph)
        for precision in precisions:
            is_exact = precision is Precision.FLOAT
            model = exact if is_exact else quantize(smooth_activations(exact, _feeds(graph, sample)))
            files[graph_file(precision, name)] = to_bytes(model)
    return files


def _feeds(graph: Graph, sample: Sequence[Subwords]) -> list[dict[str, npt.NDArray[Any]]]:
    """Return inputs to measure the range of values on: utterances, if the graph reads any, with everything allowed."""
    if "ids" not in graph.signature.inputs:
        return []
    others = {name: graph.example(name)[:1].numpy() for name in graph.signature.inputs if name != "ids"}
    return [{"ids": as_ids([utterance.ids]), **others} for utterance in sample]


def _spread(items: Sequence[T], n: int) -> Sequence[T]:
    """Return about `n` items, evenly spread."""
    return items[:: max(1, len(items) // n)]


def _check(
    trained: TrainedModel,
    folder: Path,
    examples: Sequence[Example],
    toy: Sequence[Subwords],
    options: ExportOptions,
    progress: Progress,
) -> Exported:
    """Return how the graphs and weights in a folder compare with the trained model, and their scores."""
    utterances = [example.subwords for example in examples] or toy
    wanted = parse_with_torch(trained, _spread(utterances, CHECKED), "parsing with PyTorch", progress)
    found = {}
    for precision in options.precisions:
        found[str(precision)] = parse_with_graphs(Parser(folder, precision=precision), utterances, progress)
    if options.weights is not Weights.NONE:
        kept, stage = load_model(folder), f"parsing with the weights in {options.weights}"
        kept.model.to("cpu")
        found[f"weights-{options.weights}"] = parse_with_torch(kept, utterances, stage, progress)
    exported = Exported()
    for name, hypotheses in found.items():
        exported.parities[name] = check_parity(wanted, _spread(hypotheses, CHECKED), name, options.least_agreement)
        if examples:
            exported.qualities[name] = measure(examples, hypotheses, trained.decoding.temperatures)
    return exported
