"""Trains all three parsers on the toy grammar and prints how well and how fast they learn it.

    python benchmarks/toy.py [--json]

5,000 rows, of which `treepiece train` holds out a tenth to choose the best epoch with; and 1,000 others to score on, of
another seed, with utterances that the 5,000 do not have. A run chooses nothing on the rows that are scored.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from itertools import islice
from pathlib import Path

from treepiece.cli.watching import Watcher
from treepiece.data.rows import Row
from treepiece.data.toy import toy_rows
from treepiece.definition import ModelKind
from treepiece.evaluation.scores import score
from treepiece.models.trained import load_model
from treepiece.training import run
from treepiece.training.examples import make_examples
from treepiece.training.prediction import predict
from treepiece.training.preparation import hold_out
from treepiece.training.recipe import read_recipe
from treepiece.trees.frame import Frame

N_TRAIN = 5000
N_HELD_OUT = 1000


def make_rows() -> tuple[list[Row], list[Row]]:
    """Return the rows to learn from, and rows with other utterances."""
    train = [_row(*row) for row in toy_rows(N_TRAIN, seed=0)]
    known = {row.frame.utterance for row in train if row.frame}
    others = (_row(*row) for row in toy_rows(10 * N_HELD_OUT, seed=1) if row[1] not in known)
    return train, list(islice(others, N_HELD_OUT))


def _row(domain: str, utterance: str, parse: str) -> Row:
    frame = Frame.from_brackets(parse, utterance)
    return Row(frame.skeleton, frame, domain)


def measure(kind: ModelKind, train: list[Row], held_out: list[Row]) -> dict[str, float]:
    """Return the scores of a model on the held-out rows, and the seconds that its training took."""
    recipe = read_recipe(None, {"model": str(kind)})
    data = hold_out(train, recipe)
    with tempfile.TemporaryDirectory() as name, Watcher(is_shown=True) as watcher:
        folder = Path(name) / "model"
        start = time.perf_counter()
        run.begin(folder, data, recipe, init=None, observer=watcher)
        run.go_on(folder, data, observer=watcher)
        seconds = time.perf_counter() - start
        trained = load_model(folder)
    scores = score(predict(trained.model, make_examples(held_out, trained.subwords)[0]))
    return {
        "em": scores.em,
        "em_s": scores.em_s,
        "passes": scores.passes,
        "invalid": scores.invalid,
        "seconds": seconds,
        "epochs": recipe.n_epochs(len(data.train)),
    }


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--models", nargs="+", default=list(ModelKind), type=ModelKind, help="treepiece, ar, nar")
    args = parser.parse_args()
    train, held_out = make_rows()
    results = {str(kind): measure(kind, train, held_out) for kind in args.models}
    if args.json:
        print(json.dumps(results))
        return
    print(f"{'model':10} {'EM':>7} {'EM-S':>7} {'passes':>7} {'invalid':>8} {'epochs':>7} {'seconds':>8}")
    for kind, result in results.items():
        print(
            f"{kind:10} {result['em']:7.4f} {result['em_s']:7.4f} {result['passes']:7.2f} "
            f"{result['invalid']:8.0f} {result['epochs']:7.0f} {result['seconds']:8.0f}"
        )


if __name__ == "__main__":
    main()
