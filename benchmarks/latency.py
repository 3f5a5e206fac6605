"""Measures how long a parse takes: TreePiece against both baselines, ONNX Runtime against PyTorch, int8 against float.

    python benchmarks/latency.py [--rows N] [--rounds N] [--model BUNDLE] [--plot FILE.png] [--json]
    python benchmarks/latency.py --bundles treepiece=DIR ar=DIR nar=DIR [the same options]

Batch 1, two threads, utterances of TOPv2 eval. "Encoder" is text to encoder states; a full parse is text to frame;
decoding is the difference, row by row. Systems take turns in blocks, so that a busy machine slows all of them alike,
and a row counts with the median of its rounds. The table has medians and 95th percentiles over rows. The ratios are of
medians; those whose names end in `_mean` are of means.

Without --bundles, random weights are made to write the gold tree, so that architectures need not be trained (see
gold.py and systems.py). With --bundles, trained bundles give their own answers, each in the precisions that it has, and
in eager PyTorch if it was exported with --weights (see bundles.py; free.py says what --json prints).

With --model, a bundle with a trained model, also: start of the process to the answer of `treepiece parse`, memory, and
parses a second in batches.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import free
import gold
import torch
from bundles import read_bundles
from machine import machine
from report import Bar, draw, show
from rows import eval_rows, texts_of
from running import cold_start, resident_megabytes, throughput
from systems import Corpus
from timing import THREADS, table

from treepiece.bundle import Bundle
from treepiece.definition import ModelKind
from treepiece.errors import TreepieceError


class Outcome(NamedTuple):
    """What is printed as JSON, what as a table and as numbers by name, and what is drawn, in so many columns."""

    result: dict[str, object]
    rows: Sequence[Mapping[str, object]]
    numbers: dict[str, float]
    panels: Mapping[str, Sequence[Bar]]
    n_columns: int


def measure_gold(args: argparse.Namespace) -> Outcome:
    """Return the times of random weights that write gold trees."""
    corpus = Corpus(args.rows)
    running = measure_running(args.model, texts_of(corpus.rows))
    found = gold.measure(corpus, args.rounds, args.torch_rounds)
    numbers, rows = {**running, **gold.ratios(found)}, table(found, "architecture")
    result = {**numbers, "rows": len(corpus.rows), **_conditions(args), "table": rows}
    return Outcome(result, rows, numbers, gold.panels(found), 3)


def measure_bundles(args: argparse.Namespace, bundles: Mapping[ModelKind, Bundle]) -> Outcome:
    """Return the times of trained bundles that answer freely."""
    texts = texts_of(eval_rows(args.rows))
    running = measure_running(args.model, texts)
    measured = free.measure(bundles, texts, args.rounds, args.torch_rounds)
    run = {"mode": "bundles", "version": 1, "rows": len(texts), **_conditions(args)}
    result = {**run, **free.to_json(measured, bundles)}
    if running:
        result["running"] = running
    numbers = {**running, **cast(dict[str, float], result["ratios"])}
    panels = free.panels(measured.found)
    return Outcome(result, cast(list[dict[str, object]], result["table"]), numbers, panels, len(panels))


def measure_running(model: str | None, texts: Sequence[str]) -> dict[str, float]:
    """Return how a trained bundle behaves as a process, if one was given."""
    if model is None:
        return {}
    return {**cold_start(model), **resident_megabytes(model), **throughput(model, texts)}


def _conditions(args: argparse.Namespace) -> dict[str, object]:
    return {"rounds": args.rounds, "torch_rounds": args.torch_rounds, **machine()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundles", nargs="+", metavar="KIND=DIR", help="trained bundles: treepiece=, ar=, nar=")
    parser.add_argument("--rows", type=int, default=100, help="utterances, evenly spread over eval")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is parsed")
    parser.add_argument("--torch-rounds", type=int, default=2, help="how often each is parsed in eager PyTorch")
    parser.add_argument("--model", help="a bundle with a trained model, for start, memory and throughput")
    parser.add_argument("--plot", metavar="FILE.png", help="save a plot")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    try:
        outcome = measure_bundles(args, read_bundles(args.bundles)) if args.bundles else measure_gold(args)
    except TreepieceError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    if args.plot:
        draw(outcome.panels, outcome.n_columns, args.plot)
    if args.json:
        print(json.dumps(outcome.result))
    else:
        show(outcome.rows, outcome.numbers)


if __name__ == "__main__":
    main()
