"""The parsers that `latency.py` times without trained weights, each made to write the gold tree.

How long a parser takes does not depend on what its weights are, but on how long the tree is that it writes. So decoders
have random weights, and the search is told what to choose: all else is as in production. On ONNX Runtime the gold spans
are forced too; in eager PyTorch, where finding spans is nothing beside the rest, TreePiece and NAR choose their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from corpora import topv2_folder
from encoders import runtime_encoder, torch_encoder
from rows import eval_rows
from timing import ENCODER, THREADS, Run

from treepiece import TreePieceTokenizer
from treepiece.bundle import CONFIG, RUNTIME, SUBWORDS, TOKENIZER, write_bundle
from treepiece.data.reader import read_rows
from treepiece.decoding.grammar import Bools, Partial, UnitGrammar
from treepiece.decoding.linear import LinearGrammar, LinearState
from treepiece.decoding.parse import Parse
from treepiece.definition import DecoderConfig, Definition, ModelKind
from treepiece.export.exporting import model_graphs
from treepiece.export.graphs import to_onnx
from treepiece.export.quantize import quantize, to_bytes
from treepiece.models.build import build_model
from treepiece.models.encoder import load_encoder
from treepiece.models.nar import NonAutoregressiveModel
from treepiece.models.trained import TrainedModel
from treepiece.runtime.graphs import PARSE, SPANS, Array, Graphs, Precision, graph_file
from treepiece.runtime.models import RuntimeModel
from treepiece.runtime.nar import NonAutoregressiveRuntime
from treepiece.runtime.parser import Parser
from treepiece.runtime.treepiece import TreePieceRuntime
from treepiece.tokenizer.storage import vocabulary_files
from treepiece.training.examples import Example, make_examples
from treepiece.trees.align import Span
from treepiece.trees.node import Node

ARCHITECTURES = {"MiniLM": "minilm", "RoBERTa-base": "random:roberta-base"}


@dataclass(frozen=True)
class Gold:
    """Utterances, their frames, and both ways to write these."""

    examples: Sequence[Example]
    units: Sequence[tuple[int, ...]]
    tokens: Sequence[tuple[int, ...]]

    @property
    def texts(self) -> list[str]:
        """The utterances as they were typed."""
        return [example.frame.utterance for example in self.examples]


class Corpus:
    """TOPv2: what models are defined by (train), and what they parse (eval)."""

    def __init__(self, n_rows: int) -> None:
        folder = topv2_folder()
        self.skeletons = [row.skeleton for row in read_rows(folder, split="train")]
        self.tokenizer = TreePieceTokenizer.train(self.skeletons)
        labels = set(self.tokenizer.units.known_labels)
        self.rows = eval_rows(n_rows, lambda row: labels_of(row.skeleton) <= labels)

    def define(self, kind: ModelKind) -> Definition:
        """Return the definition of a model for these trees."""
        tokenizer = self.tokenizer if kind is ModelKind.TREEPIECE else None
        trees, sizes = set(self.skeletons), DecoderConfig()
        return Definition.of_trees(kind, trees, decoder=sizes, composed=True, tokenizer=tokenizer)


def labels_of(skeleton: Node) -> set[str]:
    """Return the labels of a tree."""
    return {node.label for node in skeleton.nodes()}


def build(corpus: Corpus, architecture: str) -> tuple[dict[ModelKind, TrainedModel], Gold]:
    """Return the three models on one encoder, and what they shall write."""
    models = {}
    for kind in ModelKind:
        torch.manual_seed(0)
        encoder, subwords = load_encoder(ARCHITECTURES[architecture])
        definition = corpus.define(kind)
        models[kind] = TrainedModel(definition, build_model(definition, encoder).eval(), subwords)
    examples, _ = make_examples(corpus.rows, models[ModelKind.AR].subwords)
    vocabulary = models[ModelKind.AR].definition.linear_vocabulary()
    units = [corpus.tokenizer.encode(example.frame.skeleton) for example in examples]
    tokens = [tuple(vocabulary.write(example.frame.skeleton, example.spans)) for example in examples]
    return models, Gold(examples, units, tokens)


class ForcedUnits(UnitGrammar):
    """Allows the units of one tree only."""

    def __init__(self, grammar: UnitGrammar) -> None:
        self.__dict__.update(vars(grammar))
        self.wanted: tuple[int, ...] = ()

    def allowed(self, state: Partial) -> Bools:
        """Return that the next wanted unit is allowed."""
        result = np.zeros(len(self.vocabulary), bool)
        result[self.wanted[len(state.unit_ids)]] = True
        return result


class ForcedTokens(LinearGrammar):
    """Allows the tokens of one frame only."""

    def __init__(self, grammar: LinearGrammar) -> None:
        self.__dict__.update(vars(grammar))
        self.wanted: tuple[int, ...] = ()

    def allowed(self, state: LinearState) -> Bools:
        """Return that the next wanted token is allowed."""
        result = np.zeros(self.vocabulary.first_pointer + state.n_subwords, bool)
        result[self.wanted[len(state.tokens)]] = True
        return result


def torch_runs(models: dict[ModelKind, TrainedModel], gold: Gold) -> dict[str, Run]:
    """Return how to run each parser, and the encoder alone, in eager PyTorch."""
    runs: dict[str, Run] = {}
    texts = gold.texts
    for kind, trained in models.items():
        force = force_torch(trained, gold)

        def run(item: int, trained: TrainedModel = trained, force: Callable[[int], None] = force) -> object:
            force(item)
            return trained.parse([texts[item]])

        runs[kind] = run
    return {ENCODER: torch_encoder(models[ModelKind.TREEPIECE], texts), **runs}


def force_torch(trained: TrainedModel, gold: Gold) -> Callable[[int], None]:
    """Return a function that makes a model write the gold tree of an utterance."""
    model = trained.model
    if isinstance(model, NonAutoregressiveModel):
        return _force_length(model, gold)
    return _force_grammar(model, gold)


def _force_grammar(model: Any, gold: Gold) -> Callable[[int], None]:  # noqa: ANN401  # of torch or of the runtime
    forced = ForcedUnits(model.grammar) if isinstance(model.grammar, UnitGrammar) else ForcedTokens(model.grammar)
    wanted = gold.units if isinstance(forced, ForcedUnits) else gold.tokens
    model.grammar = forced

    def force(item: int) -> None:
        forced.wanted = wanted[item]

    return force


def _force_length(model: NonAutoregressiveModel, gold: Gold) -> Callable[[int], None]:
    real = model.predict_length

    def force(item: int) -> None:
        place = len(gold.tokens[item]) // 2 - 1

        def predict(memory: Any) -> torch.Tensor:  # noqa: ANN401
            logits = real(memory)  # computed as ever, and then overruled
            logits[:, place] += 1e6
            return logits

        model.predict_length = predict  # type: ignore[method-assign]

    return force


def runtime_runs(gold: Gold, precision: Precision, folder: Path) -> dict[str, Run]:
    """Return how to run each parser, and the encoder alone, on ONNX Runtime, with bundles in a folder."""
    runs: dict[str, Run] = {}
    texts = gold.texts
    for kind in ModelKind:
        parser = Parser.load(folder / kind, precision=precision, threads=THREADS)
        force = force_runtime(parser.model, gold)

        def run(item: int, parser: Parser = parser, force: Callable[[int], None] = force) -> object:
            force(item)
            return parser(texts[item])

        runs[kind] = run
    encoder = Parser.load(folder / ModelKind.TREEPIECE, precision=precision, threads=THREADS)
    return {ENCODER: runtime_encoder(encoder, texts), **runs}


class ForcedGraphs(Graphs):
    """Graphs whose scores are overruled where an answer is wanted: of spans (TreePiece) or of tokens (NAR)."""

    def __init__(self, graphs: Graphs, *, is_parallel: bool) -> None:
        self.__dict__.update(vars(graphs))
        self.is_parallel = is_parallel
        self.spans: Sequence[Span] = ()
        self.tokens: Sequence[int] = ()

    def run(self, name: str, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs of a graph, those that decide what is written as wanted."""
        outputs = super().run(name, inputs)
        if self.is_parallel:
            outputs[2][0, range(len(self.tokens)), self.tokens] = 0.0
        elif name in (PARSE, SPANS) and outputs[-1].shape[1] >= 2 * len(self.spans):
            for leaf, (start, end) in enumerate(self.spans):
                outputs[-1][0, 2 * leaf, start] = outputs[-1][0, 2 * leaf + 1, end - 1] = 0.0
        return outputs


def force_runtime(model: RuntimeModel, gold: Gold) -> Callable[[int], None]:
    """Return a function that makes a parser write the gold frame of an utterance."""
    if isinstance(model, NonAutoregressiveRuntime):
        return _force_parallel(model, gold)
    force = _force_grammar(model, gold)
    if not isinstance(model, TreePieceRuntime):
        return force
    graphs = model.graphs = ForcedGraphs(model.graphs, is_parallel=False)

    def force_all(item: int) -> None:
        force(item)
        graphs.spans = [span for span in gold.examples[item].spans if span.start < span.end]
        model.first = model.grammar.allowed(model.grammar.start())[np.newaxis]

    return force_all


def _force_parallel(model: NonAutoregressiveRuntime, gold: Gold) -> Callable[[int], None]:
    real = model.parse
    graphs = model.graphs = ForcedGraphs(model.graphs, is_parallel=True)
    lengths = np.zeros(DecoderConfig().longest // 2, bool)

    def parse(ids: npt.NDArray[np.int64], *, beam: int = 1) -> list[list[Parse]]:
        return real(ids, beam=beam, allowed_lengths=lengths)

    def force(item: int) -> None:
        graphs.tokens = gold.tokens[item]
        lengths[:] = False
        lengths[len(graphs.tokens) // 2 - 1] = True

    model.parse = parse  # type: ignore[method-assign,assignment]
    return force


def write_bundles(models: dict[ModelKind, TrainedModel], folder: Path) -> None:
    """Export models without the checks of `treepiece export`, which are about answers."""
    for kind, trained in models.items():
        graphs = model_graphs(trained)
        files = {
            CONFIG: json.dumps({"model": trained.definition.to_json()}).encode(),
            SUBWORDS: trained.subwords.text.encode(),
            RUNTIME: json.dumps({"longest": trained.subwords.longest}).encode(),
        }
        if trained.definition.tokenizer:
            units = vocabulary_files(trained.definition.tokenizer.units, None)
            files |= {f"{TOKENIZER}/{name}": data for name, data in units.items()}
        for name, graph in graphs.items():
            model = to_onnx(graph)
            files[graph_file(Precision.FLOAT, name)] = to_bytes(model)
            files[graph_file(Precision.INT8, name)] = to_bytes(quantize(model))
        write_bundle(folder / kind, kind, files)
