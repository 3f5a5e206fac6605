"""How long a parse takes: TreePiece against both baselines, ONNX Runtime against PyTorch, int8 against float.

    python -m experiments latency [--rows N] [--rounds N] [--model BUNDLE] [--plot FILE.png] [--json]
    python -m experiments latency --bundles treepiece=DIR ar=DIR nar=DIR [the same options]

Batch 1, two threads, utterances of TOPv2 eval. "Encoder" is text to encoder states; a full parse is text to frame;
decoding is the difference, row by row. Systems take turns in blocks, so that a busy machine slows all of them alike,
and a row counts with the median of its rounds. The table has median, 95th percentile and mean over rows. Ratios are
of medians; those whose names end in `_mean` are of means.

Without --bundles, random weights are made to write the gold tree, so that no model has to be trained (see gold.py).
With --bundles, trained parsers answer freely, in each way to search (see parsers.py), in the precisions that a bundle
has, and in eager PyTorch if it was exported with --weights. --model adds what `python -m experiments process` prints.

With --bundles, --json prints an object with the keys mode, version, rows, rounds, torch_rounds, batch, threads, cpu,
cores, versions and:

    bundles     by kind: the SHA-256 of its `manifest`, its `precisions`, and whether it has `weights` for PyTorch
    decodings   by kind and way to search: the settings of decoding
    table       a list: `model`, `engine` (float, int8, torch), `system` (encoder or a way to search); milliseconds of a
                `full` parse and of `decoding`, each as median, p95 and mean over rows; decoder `passes`, which look at
                the utterance, with all of a beam at once; `runs` of each graph per text, when the texts first came
    ratios      by name, of what was given; NAME is a way to search, the baselines have their first:
                full_over_encoder_ENGINE_NAME, ar_over_treepiece_decoding_ENGINE_NAME,
                treepiece_over_nar_decoding_ENGINE_NAME, ar_over_treepiece_full_ENGINE_NAME,
                float_over_int8_full_KIND_NAME, torch_over_ort_full_KIND_NAME (float on ONNX Runtime)
    running     with --model, by name: start, memory, parses per second
"""

from __future__ import annotations

import hashlib
import json
import textwrap
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from experiments.encoders import runtime_encoder, torch_encoder
from experiments.parsers import decodings, load_parsers, read_bundles
from experiments.plotting import KINDS, Bar, draw_times
from experiments.process import measure_process
from experiments.timing import (
    ENCODER,
    THREADS,
    TORCH,
    Costs,
    Milliseconds,
    Run,
    Setting,
    System,
    Times,
    all_costs,
    machine,
    parser_ratios,
    summarise,
    time_systems,
    time_table,
)
from experiments.topv2 import add_topv2, spread_rows, texts_of
from treepiece.bundle import MANIFEST, WEIGHTS, Bundle
from treepiece.definition import ModelKind
from treepiece.models.trained import load_model
from treepiece.runtime.loading import RuntimeModel
from treepiece.runtime.parser import Parser
from treepiece.runtime.sessions import PREFIX, SKELETON, Array, Precision, precisions_in

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

ENGINES = (*Precision, TORCH)
_BLIND = (PREFIX, SKELETON)
"""Graphs that do not see the utterance; what they compute is cached."""


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_topv2(parser)
    parser.add_argument("--bundles", nargs="+", metavar="KIND=DIR", help="trained bundles: treepiece=, ar=, nar=")
    parser.add_argument("--rows", type=int, default=100, help="utterances, evenly spread over eval")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is parsed")
    parser.add_argument("--torch-rounds", type=int, default=2, help="how often each is parsed in eager PyTorch")
    parser.add_argument("--model", help="a bundle with a trained model, for start, memory and throughput")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="save a plot")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Namespace) -> None:
    """Measure and print."""
    torch.set_num_threads(THREADS)
    conditions = {"rounds": args.rounds, "torch_rounds": args.torch_rounds, **machine()}
    if args.bundles:
        bundles = read_bundles(args.bundles)
        texts = texts_of(spread_rows(args.topv2, args.rows))
        running = measure_process(args.model, texts) if args.model else {}
        measured = measure(bundles, texts, args.rounds, args.torch_rounds)
        shown = {"mode": "bundles", "version": 2, "rows": len(texts), **conditions, **to_json(measured, bundles)}
        numbers = {**running, **cast(dict[str, float], shown["ratios"])}
        result = shown | ({"running": running} if running else {})
        panels = free_panels(measured.times)
    else:
        from experiments import gold

        corpus = gold.Corpus(args.topv2, args.rows)
        running = measure_process(args.model, texts_of(corpus.rows)) if args.model else {}
        times = gold.measure(corpus, args.rounds, args.torch_rounds)
        numbers = {**running, **gold.ratios(times)}
        table = time_table(times, "architecture")
        result = {**numbers, "rows": len(corpus.rows), **conditions, "table": table}
        panels = gold.panels(times)
    if args.plot:
        draw_times(panels, 3, args.plot)
    if args.json:
        print(json.dumps(result))
    else:
        show(cast(list[dict[str, object]], result["table"]), numbers)


@dataclass(frozen=True)
class Measured:
    """The times of all systems; of those that run on graphs, their settings and what was counted."""

    times: dict[Setting, dict[str, Milliseconds]] = field(default_factory=dict)
    counts: dict[System, dict[str, object]] = field(default_factory=dict)
    decodings: dict[ModelKind, dict[str, object]] = field(default_factory=dict)

    def add(self, times: Mapping[System, Milliseconds]) -> None:
        """Add the times of systems."""
        for (setting, name), values in times.items():
            self.times.setdefault(setting, {})[name] = values


def measure(bundles: Mapping[ModelKind, Bundle], texts: Sequence[str], rounds: int, rounds_torch: int) -> Measured:
    """Return the times of every bundle on every engine that it is for; the systems of one engine take turns."""
    measured = Measured()
    for precision in Precision:
        runs: dict[System, Run] = {}
        for kind, bundle in bundles.items():
            if precision in precisions_in(bundle):
                parsers = load_parsers(bundle.folder, precision, THREADS)
                measured.decodings[kind] = {name: parser.decoding.to_json() for name, parser in parsers.items()}
                setting = kind, precision
                runs[setting, ENCODER] = runtime_encoder(next(iter(parsers.values())), texts)
                for name, parser in parsers.items():
                    measured.counts[setting, name] = count_passes(parser, texts)
                    runs[setting, name] = _parse(parser, texts)
        measured.add(time_systems(runs, len(texts), rounds))
    runs = {}
    for kind, bundle in bundles.items():
        if WEIGHTS in bundle.files:
            runs |= {((kind, TORCH), name): run for name, run in torch_runs(bundle, texts).items()}
    measured.add(time_systems(runs, len(texts), rounds_torch))
    return measured


def _parse(parser: Parser, texts: Sequence[str]) -> Run:
    return lambda item: parser(texts[item])


def torch_runs(bundle: Bundle, texts: Sequence[str]) -> dict[str, Run]:
    """Return how to run the weights of a bundle as the paper searches, and its encoder alone, in eager PyTorch."""
    trained = load_model(bundle.folder)
    trained.model.to("cpu")
    ways = decodings(trained.definition.kind, trained.decoding, has_reranker=trained.definition.extensions.reranker)
    name, trained.decoding = next(iter(ways.items()))
    return {ENCODER: torch_encoder(trained, texts), name: lambda item: trained.parse([texts[item]])}


def count_passes(parser: Parser, texts: Sequence[str]) -> dict[str, object]:
    """Return how many passes of a decoder each text took, and how often each graph ran for a text, on average.

    A pass is a run that looks at the utterance, with all of a beam at once. The first run of TreePiece, where it is
    all of the parse, is two: units and spans.
    """
    passes, total = [], Counter[str]()
    for text in texts:
        with counting_runs(parser.model) as counts:
            answer = parser(text).best
        looks = sum(count for name, count in counts.items() if name not in _BLIND)
        passes.append(max(looks, answer.passes))
        total.update(counts)
    runs = {name: count / len(texts) for name, count in sorted(total.items())}
    return {"passes": summarise(np.array(passes)), "runs": runs}


@dataclass(frozen=True)
class _CountedSession:
    """A session that counts its runs."""

    session: InferenceSession
    name: str
    counts: Counter[str]

    def run(self, outputs: None, inputs: Mapping[str, Array]) -> list[Array]:
        self.counts[self.name] += 1
        found: list[Array] = self.session.run(outputs, inputs)
        return found


@contextmanager
def counting_runs(model: RuntimeModel) -> Iterator[Counter[str]]:
    """Give a counter of the runs of each graph."""
    counts: Counter[str] = Counter()
    graphs = model.graphs
    counted = {name: _CountedSession(session, name, counts) for name, session in graphs.items()}
    try:
        model.graphs = cast(Any, counted)
        yield counts
    finally:
        model.graphs = graphs


def free_ratios(times: Times) -> dict[str, float]:
    """Return the ratios by name: of medians, and with `_mean` of means."""
    result: dict[str, float] = {}
    for suffix, costs in all_costs(times).items():
        for engine in ENGINES:
            ar, nar = (next(iter(_systems(times, (kind, engine))), None) for kind in (ModelKind.AR, ModelKind.NAR))
            for treepiece in _systems(times, (ModelKind.TREEPIECE, engine)):
                values = parser_ratios(costs, treepiece, ar, nar)
                result |= {f"{name}_{engine}_{treepiece[1]}{suffix}": value for name, value in values.items()}
        for kind in ModelKind:
            for _, name in _systems(times, (kind, Precision.FLOAT)):
                values = _engine_ratios(costs, kind, name)
                result |= {f"{ratio}_{kind}_{name}{suffix}": value for ratio, value in values.items()}
    return result


def _engine_ratios(costs: Costs, kind: ModelKind, name: str) -> dict[str, float]:
    """Return by name how one system compares on other engines with itself on ONNX Runtime in float."""
    exact, small, eager = (((kind, engine), name) for engine in ENGINES)
    result = {}
    if small in _systems(costs.times, small[0]):
        result["float_over_int8_full"] = costs.full(exact) / costs.full(small)
    if eager in _systems(costs.times, eager[0]):
        result["torch_over_ort_full"] = costs.full(eager) / costs.full(exact)
    return result


def _systems(times: Times, setting: Setting) -> list[System]:
    """Return the parsers of a setting, all but the encoder; none if it was not timed."""
    return [(setting, name) for name in times.get(setting, {}) if name != ENCODER]


def to_json(measured: Measured, bundles: Mapping[ModelKind, Bundle]) -> dict[str, object]:
    """Return what was measured, as the top of this file says."""
    rows = time_table(measured.times, "model")
    systems = [(setting, name) for setting, here in measured.times.items() for name in here]
    for row, system in zip(rows, systems, strict=True):
        row |= measured.counts.get(system, {})
    return {
        "batch": 1,
        "threads": THREADS,
        "bundles": {kind: _describe(bundle) for kind, bundle in bundles.items()},
        "decodings": measured.decodings,
        "table": rows,
        "ratios": free_ratios(measured.times),
    }


def _describe(bundle: Bundle) -> dict[str, object]:
    digest = hashlib.sha256((bundle.folder / MANIFEST).read_bytes()).hexdigest()
    return {"manifest": digest, "precisions": precisions_in(bundle), "weights": WEIGHTS in bundle.files}


def free_panels(times: Times) -> dict[str, Sequence[Bar]]:
    """Return what is drawn, by title: an engine each."""
    return {
        engine: [
            Bar(_label(kind, name), kind, times[setting][ENCODER], times[setting][name])
            for kind in KINDS
            for setting, name in _systems(times, (kind, engine))
        ]
        for engine in ENGINES
        if any(setting[1] == engine for setting in times)
    }


def _label(kind: str, name: str) -> str:
    return KINDS[kind] if kind != ModelKind.TREEPIECE else textwrap.fill(f"{KINDS[kind]} {name}", 9)


def show(rows: Sequence[Mapping[str, object]], numbers: Mapping[str, float]) -> None:
    """Print a table, with the decoder passes where they are known, and numbers by name."""
    first, *_ = rows[0]
    columns = [(part, key) for part in ("decoding", "full") for key in ("median", "p95", "mean")]
    above = f"{'decoding, ms':>30}{'full, ms':>30}"
    if any("passes" in row for row in rows):
        columns.append(("passes", "mean"))
        above += f"{'passes':>10}"
    print(f"{'':36}{above}")
    print(f"{first:14}{'engine':8}{'system':14}{''.join(f'{key:>10}' for _, key in columns)}")
    for row in rows:
        cells = [_cell(row, part, key) for part, key in columns]
        print(f"{row[first]:14}{row['engine']:8}{row['system']:14}{''.join(cells)}")
    print()
    for name, value in numbers.items():
        print(f"{name:66}{value:10.3f}")


def _cell(row: Mapping[str, object], part: str, key: str) -> str:
    return f"{cast(Mapping[str, float], row[part])[key]:10.2f}" if part in row else f"{'-':>10}"
