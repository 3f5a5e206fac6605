"""`treepiece evaluate`: how well a trained parser does on rows whose parse is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from treepiece.cli.console import note, progress, say_json, say_table
from treepiece.cli.reading import BUNDLED_HELP, Data, Json, Split, Strict, load_rows
from treepiece.data.rows import Row
from treepiece.evaluation.bootstrap import PairedTest, paired_test
from treepiece.evaluation.outcomes import Outcome
from treepiece.evaluation.report import write_errors
from treepiece.evaluation.scores import Part, Scores, score
from treepiece.options import whole_number
from treepiece.trees.node import Node

if TYPE_CHECKING:
    from treepiece.cli.predicting import Predictor

_SHOWN = 3
_CONFUSIONS = 10


def evaluate(
    data: Data,
    model: Annotated[
        str,
        typer.Option(
            metavar="DIR", help=f"The folder of a model that `treepiece train` or `export` wrote, {BUNDLED_HELP}"
        ),
    ],
    split: Split = "eval",
    beam: Annotated[int, typer.Option(help="How many candidates the search keeps; 1 is greedy.")] = 1,
    precision: Annotated[
        str | None, typer.Option(help="Evaluate the graphs of a bundle: float or int8; else PyTorch, if it can.")
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(metavar="DIR2", help="Another model, for a paired test on the same rows; `bundled` too."),
    ] = None,
    errors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write each miss with its gold and predicted tree, as JSONL.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only so many rows, evenly spread over DATA.")] = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Parse the utterances of DATA and compare with its parses.

    EM is the share of frames that are right in labels, order and spans, EM-S that of right skeletons. Intervals are
    95 % bootstrap intervals. Rows whose utterance is too long for the encoder are counted, but not scored.

    Examples:

    - `treepiece evaluate --model model topv2 --split eval`
    - `treepiece evaluate --model model my.tsv --errors misses.jsonl --json`
    - `treepiece evaluate --model bundle my.tsv --precision int8`
    - `treepiece evaluate --model model my.tsv --compare bundled`
    """
    from treepiece.cli.predicting import load_predictor

    beam = whole_number("--beam", beam, 1)
    trained = load_predictor(model, precision)
    other = load_predictor(compare, None) if compare else None
    rows = _spread(load_rows(data, split=split, strict=strict), limit)
    by_row, n_left_out = _parse(trained, rows, beam)
    outcomes = list(by_row.values())
    scores = score(outcomes, _seen(trained, outcomes))
    result = scores.to_json() | {"unparsable": n_left_out, "beam": beam}
    test = None
    if other is not None:
        test = _compare(by_row, _parse(other, rows, beam)[0])
        result["compare"] = {"model": str(compare), **vars(test)}
    if errors is not None:
        note(f"{errors}: {write_errors(errors, outcomes):,} misses")
    if as_json:
        say_json(result)
    else:
        _draw(scores, n_left_out, f"{model} on {data}", test, str(compare))


def _spread(rows: list[Row], limit: int | None) -> list[Row]:
    if limit is None or limit >= len(rows):
        return rows
    limit = whole_number("--limit", limit, 1)
    return [rows[place * len(rows) // limit] for place in range(limit)]


def _parse(trained: Predictor, rows: Sequence[Row], beam: int) -> tuple[dict[int, Outcome], int]:
    """Return the outcomes of the rows that can be parsed, by the identity of the row's frame, and how many cannot."""
    examples, left_out = trained.examples(rows)
    for reason in left_out[:_SHOWN]:
        note(f"not parsed: {reason}")
    with progress() as bars:
        task = bars.add_task("parsing", total=len(examples), unit="rows")
        outcomes = trained.predict(examples, beam, lambda done: bars.update(task, completed=done))
    return {id(example.frame): outcome for example, outcome in zip(examples, outcomes, strict=True)}, len(left_out)


def _seen(trained: Predictor, outcomes: Sequence[Outcome]) -> set[Node] | None:
    """Return those of the gold skeletons that the model had in training; None if it does not know."""
    from treepiece.training.fingerprints import skeleton_digest

    known = trained.facts.get("skeletons")
    if not isinstance(known, list):
        return None
    digests = set(known)
    skeletons = {outcome.gold.skeleton for outcome in outcomes}
    return {skeleton for skeleton in skeletons if skeleton_digest(skeleton) in digests}


def _compare(first: Mapping[int, Outcome], second: Mapping[int, Outcome]) -> PairedTest:
    """Return the paired test over the rows that both models could parse."""
    pairs = [(outcome.is_exact, second[row].is_exact) for row, outcome in first.items() if row in second]
    hits = np.array(pairs, bool).reshape(-1, 2)
    return paired_test(hits[:, 0], hits[:, 1])


def _draw(scores: Scores, n_left_out: int, title: str, test: PairedTest | None, compared: str) -> None:
    say_table(
        title,
        [
            ("rows", scores.rows),
            ("EM", f"{scores.em:.4f}  ({scores.em_low:.4f} to {scores.em_high:.4f})"),
            ("EM-S", f"{scores.em_s:.4f}  ({scores.em_s_low:.4f} to {scores.em_s_high:.4f})"),
            ("decoder passes a tree", scores.passes),
            ("invalid outputs", scores.invalid),
            ("rows too long to parse", n_left_out),
        ],
    )
    for name, parts in (("domain", scores.by_domain), ("depth", scores.by_depth), ("skeleton", scores.by_seen)):
        if parts:
            _draw_parts(name, parts)
    if scores.confusions:
        table = Table("gold", "predicted", "times", box=box.SIMPLE, title="Label errors", title_justify="left")
        for confusion in scores.confusions[:_CONFUSIONS]:
            table.add_row(confusion.gold or "(none)", confusion.predicted or "(none)", str(confusion.count))
        Console().print(table)
    if test is not None:
        say_table(
            f"Against {compared}",
            [
                ("difference in EM", f"{test.difference:+.4f}  ({test.low:+.4f} to {test.high:+.4f})"),
                ("right here only", test.only_first),
                ("right there only", test.only_second),
                ("p-value (McNemar)", f"{test.p_value:.2g}"),
            ],
        )


def _draw_parts(name: str, parts: Mapping[str, Part]) -> None:
    table = Table(name, "rows", "EM", "EM-S", box=box.SIMPLE)
    for column in table.columns[1:]:
        column.justify = "right"
    for part, scores in parts.items():
        table.add_row(part, f"{scores.rows:,}", f"{scores.em:.4f}", f"{scores.em_s:.4f}")
    Console().print(table)
