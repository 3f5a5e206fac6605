"""Latency without trained weights: random weights that are made to write the gold tree.

How long a parser takes does not depend on what its weights are, but on how long the tree is that it writes. So decoders
have random weights, and the grammar of the search is told what to allow: all else is the code that ships. On ONNX
Runtime the gold spans are forced too; in eager PyTorch, where finding spans is nothing beside the rest, TreePiece and
NAR choose their own.

BART-base is what people would use instead: `generate` writes the tree as text. Each label with its bracket is one
token, as is usual for this task; words are cut into subwords by MiniLM's tokenizer, which cuts much as BART's own does.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from experiments.encoders import runtime_encoder, torch_encoder
from experiments.plotting import KINDS, Bar
from experiments.timing import (
    ENCODER,
    THREADS,
    TORCH,
    Milliseconds,
    Run,
    Setting,
    Times,
    all_costs,
    parser_ratios,
    time_systems,
)
from experiments.topv2 import skeletons_of_split, spread_rows
from treepiece import TreePieceTokenizer
from treepiece.bundle import CONFIG, DECODING, RUNTIME, SUBWORDS, TOKENIZER, write_bundle
from treepiece.data.examples import Example, make_examples
from treepiece.decoding.linearization import TokenGrammar, TokenState
from treepiece.decoding.search import Bools, Partial, UnitGrammar
from treepiece.definition import DecoderConfig, Definition, Extensions, ModelKind
from treepiece.export.exporter import model_graphs
from treepiece.export.graph_modules import to_onnx
from treepiece.export.quantization import quantize, to_bytes
from treepiece.models.baselines import NonAutoregressiveModel
from treepiece.models.encoder import load_encoder
from treepiece.models.trained import TrainedModel, build_model
from treepiece.models.treepiece_model import TreePieceModel
from treepiece.runtime.onnx_baselines import AutoregressiveRuntime, NonAutoregressiveRuntime
from treepiece.runtime.onnx_scorer import TreePieceRuntime
from treepiece.runtime.parser import Parser
from treepiece.runtime.sessions import PARSE, SPANS, Array, Precision, graph_file
from treepiece.text import SubwordTokenizer
from treepiece.tokenizer.storage import vocabulary_files
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame
from treepiece.trees.node import Kind

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

ARCHITECTURES = {"MiniLM": "minilm", "RoBERTa-base": "random:roberta-base"}
BART = "BART-base"
TREEPIECE, AR, NAR = ModelKind.TREEPIECE, ModelKind.AR, ModelKind.NAR
_IMPOSSIBLE = -1e4
Force = Callable[[int], None]
"""Makes a parser write the gold tree of the utterance of a number."""


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

    def __init__(self, topv2: Path, n_rows: int) -> None:
        self.skeletons = skeletons_of_split(topv2, "train")
        self.tokenizer = TreePieceTokenizer.train(self.skeletons)
        labels = set(self.tokenizer.units.known_labels)
        self.rows = spread_rows(topv2, n_rows, lambda row: {node.label for node in row.skeleton.nodes()} <= labels)

    def define(self, kind: ModelKind) -> Definition:
        """Return the definition of a model for these trees."""
        tokenizer = self.tokenizer if kind is TREEPIECE else None
        trees, sizes = set(self.skeletons), DecoderConfig()
        extensions = Extensions(placeholder_label=True, compositional=True) if tokenizer else None
        return Definition.of_trees(kind, trees, decoder=sizes, tokenizer=tokenizer, extensions=extensions)


def measure(corpus: Corpus, rounds: int, rounds_torch: int) -> dict[Setting, dict[str, Milliseconds]]:
    """Return the times of every system in every setting."""
    times: dict[Setting, dict[str, Milliseconds]] = {}
    for architecture in ARCHITECTURES:
        models, gold = build(corpus, architecture)
        n_rows = len(gold.examples)
        with tempfile.TemporaryDirectory() as folder:
            write_bundles(models, Path(folder))
            for precision in Precision:
                runs = runtime_runs(gold, precision, Path(folder))
                times[architecture, precision] = time_systems(runs, n_rows, rounds)
        times[architecture, TORCH] = time_systems(torch_runs(models, gold), n_rows, rounds_torch)
        if architecture == "MiniLM":
            bart = bart_run(gold, models[TREEPIECE].subwords)
            times[BART, TORCH] = time_systems({BART: bart}, min(n_rows, 30), 1)
    return times


def ratios(times: Times) -> dict[str, float]:
    """Return the ratios by name: of medians, and with `_mean` of means."""
    result: dict[str, float] = {}
    for suffix, costs in all_costs(times).items():
        for setting in [("MiniLM", "int8"), ("MiniLM", "float"), ("RoBERTa-base", "int8"), ("RoBERTa-base", "float")]:
            # What is shipped, MiniLM in int8, has the plain names.
            where = "" if setting == ("MiniLM", "int8") else f"_{setting[0].lower().replace('-', '_')}_{setting[1]}"
            systems = (setting, TREEPIECE), (setting, AR), (setting, NAR)
            result |= {f"{name}{where}{suffix}": value for name, value in parser_ratios(costs, *systems).items()}
        full = {setting: costs.full((setting, TREEPIECE)) for setting in times if setting[0] == "MiniLM"}
        paper, bart = ("RoBERTa-base", TORCH), costs.full(((BART, TORCH), BART))
        exact, small, eager = full["MiniLM", "float"], full["MiniLM", "int8"], full["MiniLM", TORCH]
        slow, fast = costs.decoding((paper, AR)), costs.decoding((paper, TREEPIECE))
        result |= {
            f"paper_setting_ar_over_treepiece_decoding{suffix}": slow / fast,
            f"float_over_int8_full{suffix}": exact / small,
            f"torch_over_ort_full{suffix}": eager / exact,
            f"bart_over_treepiece_full{suffix}": bart / small,
        }
    return result


def panels(times: Times) -> dict[str, Sequence[Bar]]:
    """Return what is drawn, by title."""
    return {
        f"{architecture}, {engine}": [Bar(KINDS[kind], kind, systems[ENCODER], systems[kind]) for kind in KINDS]
        for (architecture, engine), systems in times.items()
        if architecture != BART
    }


def build(corpus: Corpus, architecture: str) -> tuple[dict[ModelKind, TrainedModel], Gold]:
    """Return the three models on one encoder, and what they shall write."""
    models = {}
    for kind in ModelKind:
        torch.manual_seed(0)
        encoder, subwords = load_encoder(ARCHITECTURES[architecture])
        definition = corpus.define(kind)
        models[kind] = TrainedModel(definition, build_model(definition, encoder).eval(), subwords)
    examples, _ = make_examples(corpus.rows, models[AR].subwords)
    vocabulary = models[AR].definition.token_vocabulary()
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


class ForcedTokens(TokenGrammar):
    """Allows the tokens of one frame only."""

    def __init__(self, grammar: TokenGrammar) -> None:
        self.__dict__.update(vars(grammar))
        self.wanted: tuple[int, ...] = ()

    def allowed(self, state: TokenState) -> Bools:
        """Return that the next wanted token is allowed."""
        result = np.zeros(self.vocabulary.first_pointer + state.n_subwords, bool)
        result[self.wanted[len(state.tokens)]] = True
        return result


@dataclass
class ForcedSession:
    """A session whose log-probabilities are overruled where an answer is wanted: of spans (TreePiece), tokens (NAR)."""

    session: InferenceSession
    spans: Sequence[Span] = ()
    tokens: Sequence[int] = field(default=())

    def run(self, outputs: None, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs of the graph; the last of them decides what is written."""
        found: list[Array] = self.session.run(outputs, inputs)
        rows = found[-1][0]
        wanted = list(self.tokens) or [place for start, end in self.spans for place in (start, end - 1)]
        if len(rows) >= len(wanted):
            rows[range(len(wanted))] = _IMPOSSIBLE
            rows[range(len(wanted)), wanted] = 0.0
        return found


def torch_runs(models: Mapping[ModelKind, TrainedModel], gold: Gold) -> dict[str, Run]:
    """Return how to run each parser, and the encoder alone, in eager PyTorch."""
    runs: dict[str, Run] = {ENCODER: torch_encoder(models[TREEPIECE], gold.texts)}
    for kind, trained in models.items():
        runs[kind] = _forced_run(force_torch(trained, gold), lambda text, it=trained: it.parse([text]), gold.texts)  # type: ignore[misc]
    return runs


def runtime_runs(gold: Gold, precision: Precision, folder: Path) -> dict[str, Run]:
    """Return how to run each parser, and the encoder alone, on ONNX Runtime, with bundles in a folder."""
    parsers = {kind: Parser(folder / kind, precision=precision, threads=THREADS) for kind in ModelKind}
    runs: dict[str, Run] = {ENCODER: runtime_encoder(parsers[TREEPIECE], gold.texts)}
    for kind, parser in parsers.items():
        runs[kind] = _forced_run(force_runtime(parser, gold), parser, gold.texts)
    return runs


def _forced_run(force: Force, parse: Callable[[str], object], texts: Sequence[str]) -> Run:
    def run(item: int) -> object:
        force(item)
        return parse(texts[item])

    return run


def force_torch(trained: TrainedModel, gold: Gold) -> Force:
    """Return a function that makes a model write the gold tree of an utterance."""
    model = trained.model
    if isinstance(model, NonAutoregressiveModel):
        return _force_length(model, gold)
    if isinstance(model, TreePieceModel):
        units = ForcedUnits(model.grammar)
        model.grammar = model.pipeline.grammar = units
        return _force_grammar(units, gold.units)
    tokens = model.grammar = ForcedTokens(model.grammar)
    return _force_grammar(tokens, gold.tokens)


def force_runtime(parser: Parser, gold: Gold) -> Force:
    """Return a function that makes a parser write the gold frame of an utterance."""
    model = parser.model
    if isinstance(model, NonAutoregressiveRuntime):
        return _force_parallel(model, gold, parser.definition.decoder.max_length // 2)
    if isinstance(model, AutoregressiveRuntime):
        tokens = model.grammar = ForcedTokens(model.grammar)
        return _force_grammar(tokens, gold.tokens)
    runtime: TreePieceRuntime = model
    units = ForcedUnits(runtime.grammar)
    runtime.grammar = runtime.pipeline.grammar = units
    force = _force_grammar(units, gold.units)
    sessions = [ForcedSession(runtime.graphs[name]) for name in (PARSE, SPANS)]
    runtime.graphs = cast(Any, {**runtime.graphs, **dict(zip((PARSE, SPANS), sessions, strict=True))})

    def force_all(item: int) -> None:
        force(item)
        for session in sessions:
            session.spans = [span for span in gold.examples[item].spans if span.start < span.end]
        runtime.allowed = units.allowed(units.start())[np.newaxis]

    return force_all


def _force_grammar(grammar: ForcedUnits | ForcedTokens, wanted: Sequence[tuple[int, ...]]) -> Force:
    def force(item: int) -> None:
        grammar.wanted = wanted[item]

    return force


def _force_length(model: NonAutoregressiveModel, gold: Gold) -> Force:
    real = model.predict_length

    def force(item: int) -> None:
        place = len(gold.tokens[item]) // 2 - 1

        def predict(encoded: Any) -> torch.Tensor:  # noqa: ANN401
            logits = real(encoded)  # computed as ever, and then overruled
            logits[:, place] += 1e6
            return logits

        model.predict_length = predict  # type: ignore[method-assign]

    return force


def _force_parallel(model: NonAutoregressiveRuntime, gold: Gold, n_lengths: int) -> Force:
    real = model.parse
    session = ForcedSession(model.graphs[PARSE])
    model.graphs = cast(Any, {PARSE: session})
    lengths = np.zeros(n_lengths, bool)
    model.parse = lambda ids, *, nbest=1: real(ids, nbest=nbest, allowed_lengths=lengths)  # type: ignore[method-assign,assignment,misc]

    def force(item: int) -> None:
        session.tokens = gold.tokens[item]
        lengths[:] = False
        lengths[len(session.tokens) // 2 - 1] = True

    return force


def write_bundles(models: Mapping[ModelKind, TrainedModel], folder: Path) -> None:
    """Export models without the checks of `treepiece export`, which are about answers."""
    for kind, trained in models.items():
        model, subwords = trained.definition.to_json(), trained.subwords
        config = {"model": model, "encoder": trained.model.encoder.to_json(), "max_length": subwords.max_length}
        files = {
            CONFIG: json.dumps(config).encode(),
            DECODING: json.dumps(trained.decoding.to_json()).encode(),
            SUBWORDS: subwords.text.encode(),
            RUNTIME: b"{}",
        }
        if trained.definition.tokenizer:
            units = vocabulary_files(trained.definition.tokenizer.units, None)
            files |= {f"{TOKENIZER}/{name}": data for name, data in units.items()}
        for name, graph in model_graphs(trained).items():
            exact = to_onnx(graph)
            files[graph_file(Precision.FLOAT, name)] = to_bytes(exact)
            files[graph_file(Precision.INT8, name)] = to_bytes(quantize(exact))
        write_bundle(folder / kind, kind, files)


_END = 2
_FIRST = 4  # after the special tokens of BART
_LABELS = 200


def bart_run(gold: Gold, subwords: SubwordTokenizer) -> Run:
    """Return how to parse with BART."""
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    model = BartForConditionalGeneration(BartConfig(encoder_layers=6, decoder_layers=6, d_model=768, **_BART_SIZES))
    model.train(False)
    targets = [[*_serialise(example.frame, subwords), _END] for example in gold.examples]

    @torch.no_grad()
    def run(item: int) -> object:
        (read,) = subwords.encode_batch([gold.texts[item]])
        target = targets[item]

        def only_gold(_: int, written: torch.Tensor) -> list[int]:
            return [target[min(len(written) - 1, len(target) - 1)]]

        return cast(Any, model).generate(
            torch.tensor([read.ids]),
            attention_mask=torch.ones(1, len(read.ids), dtype=torch.long),
            max_new_tokens=len(target),
            num_beams=1,
            do_sample=False,
            prefix_allowed_tokens_fn=only_gold,
        )

    return run


_BART_SIZES: dict[str, Any] = {
    "encoder_ffn_dim": 3072,
    "decoder_ffn_dim": 3072,
    "encoder_attention_heads": 12,
    "decoder_attention_heads": 12,
    "vocab_size": 50265,
    "forced_eos_token_id": None,
}


def _serialise(frame: Frame, subwords: SubwordTokenizer) -> list[int]:
    """Return numbers for the tokens of the decoupled tree: labels, subwords, closing brackets."""
    tokens: list[int] = []
    for kind, text in frame.tree.events():
        if kind is Kind.WORD:
            tokens += [_FIRST + _LABELS + number for number in subwords.encode_batch([text])[0].ids[1:-1]]
        else:
            tokens.append(_FIRST + (hash(text) % (_LABELS - 1) if kind is Kind.OPEN else _LABELS - 1))
    return tokens
