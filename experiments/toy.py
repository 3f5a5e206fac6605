"""How well and how fast the three parsers learn the toy grammar.

    python -m experiments toy [--kinds treepiece ar nar] [--json]

5,000 rows, a tenth of which are held out to choose the best epoch with; and 1,000 others to score on, of another seed,
with utterances that the 5,000 do not have. Nothing is chosen on the rows that are scored.
"""

from __future__ import annotations

import json
import tempfile
import time
from argparse import ArgumentParser, Namespace
from itertools import islice
from pathlib import Path

import treepiece
from treepiece.cli.console import ProgressBars
from treepiece.data.rows import Row
from treepiece.data.toy import toy_rows
from treepiece.definition import ModelKind
from treepiece.training.recipe import Recipe
from treepiece.trees.frame import Frame

N_TRAIN = 5000
N_SCORED = 1000


def make_rows(n_train: int) -> tuple[list[Row], list[Row]]:
    """Return the rows to learn from, and rows with other utterances."""
    train = [_row(*row) for row in toy_rows(n_train, seed=0)]
    known = {row.frame.utterance for row in train if row.frame}
    others = (_row(*row) for row in toy_rows(10 * N_SCORED, seed=1) if row[1] not in known)
    return train, list(islice(others, N_SCORED))


def _row(domain: str, utterance: str, parse: str) -> Row:
    frame = Frame.from_brackets(parse, utterance)
    return Row(frame.skeleton, frame, domain)


def measure(recipe: Recipe, train: list[Row], others: list[Row]) -> dict[str, float]:
    """Return the scores of a model on other rows, and the seconds that its training took."""
    with tempfile.TemporaryDirectory() as name, ProgressBars() as bars:
        folder = Path(name) / "model"
        start = time.perf_counter()
        result = treepiece.train(train, folder, recipe=recipe, progress=bars)
        seconds = time.perf_counter() - start
        scores = treepiece.evaluate(folder, others, progress=bars)
    return {
        "em": scores.em,
        "em_s": scores.em_s,
        "passes": scores.passes,
        "invalid": scores.invalid,
        "seconds": seconds,
        "epochs": recipe.n_epochs(result.rows),
    }


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--kinds", nargs="+", default=list(ModelKind), type=ModelKind, help="treepiece, ar, nar")
    parser.add_argument("--rows", type=int, default=N_TRAIN, help="rows to learn from")
    parser.add_argument("--epochs", type=int, help="by default as many as the default recipe has")


def run(args: Namespace) -> None:
    """Train and print."""
    train, others = make_rows(args.rows)
    results = {str(kind): measure(Recipe(kind=kind, epochs=args.epochs), train, others) for kind in args.kinds}
    if args.json:
        print(json.dumps(results))
        return
    print(f"{'kind':10} {'EM':>7} {'EM-S':>7} {'passes':>7} {'invalid':>8} {'epochs':>7} {'seconds':>8}")
    for kind, result in results.items():
        print(
            f"{kind:10} {result['em']:7.4f} {result['em_s']:7.4f} {result['passes']:7.2f} "
            f"{result['invalid']:8.0f} {result['epochs']:7.0f} {result['seconds']:8.0f}"
        )
