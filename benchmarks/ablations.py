"""Trains variants of the TreePiece recipe on a part of TOPv2 and prints what each of them is worth.

    python benchmarks/ablations.py [--rows N] [--epochs N] [--variants NAME ...] [--json]

All variants see the same rows of the train split, in the same order, for the same number of epochs, and are scored on
the same 4,000 other rows of the train split after the last epoch. The eval split is not touched.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from corpora import topv2_folder
from variants import BASE, VARIANTS

from treepiece.cli.watching import Watcher
from treepiece.data.reader import read_rows
from treepiece.data.rows import Row
from treepiece.training import run
from treepiece.training.observer import EpochReport
from treepiece.training.preparation import Data
from treepiece.training.recipe import read_recipe

RECIPE = Path(__file__).parents[1] / "recipes" / "topv2-minilm-treepiece.yaml"
N_SCORED = 4000


class LastEpoch(Watcher):
    """Remembers the last epoch."""

    last: EpochReport

    def epoch(self, report: EpochReport) -> None:
        """Remember and show."""
        self.last = report
        super().epoch(report)


def take_rows(rows: Sequence[Row], n: int, n_scored: int = N_SCORED) -> Data:
    """Return `n` random rows of the train split to learn from, and others to score on."""
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    chosen = [rows[place] for place in order]
    return Data(chosen[n_scored : n_scored + n], chosen[:n_scored])


def measure(data: Data, changes: dict[str, Any], epochs: int) -> dict[str, float]:
    """Return the scores after the last epoch, and how long it all took."""
    recipe = read_recipe(RECIPE, {**BASE, "epochs": epochs, **changes})
    with tempfile.TemporaryDirectory() as name, LastEpoch(is_shown=True) as watcher:
        folder = Path(name) / "model"
        start = time.perf_counter()
        run.begin(folder, data, recipe, init=None, observer=watcher)
        run.go_on(folder, data, observer=watcher)
        report = watcher.last
        seconds = time.perf_counter() - start
    return {"em": report.em, "em_s": report.em_s, "rows_per_second": report.rows_per_second, "seconds": seconds}


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8000, help="rows to learn from")
    parser.add_argument("--epochs", type=int, default=2, help="passes over them")
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS), metavar="NAME")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    data = take_rows(list(read_rows(topv2_folder(), split="train")), args.rows)
    results = {}
    for name in args.variants:
        results[name] = measure(data, VARIANTS[name], args.epochs)
        if not args.json:
            print(name, *(f"{key} {value:.4g}" for key, value in results[name].items()), sep="  ", flush=True)
    if args.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
