"""`treepiece evaluate`: scores a trained parser on rows with gold parses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from treepiece.api import Predictions, Predictor, open_predictor
from treepiece.bundle import find_graphs, read_bundle
from treepiece.checks import fraction, whole_number
from treepiece.cli.arguments import BUNDLED_HELP, Data, Json, Spelling, Split, Strict, load_rows
from treepiece.cli.console import ProgressBars, note, say_json, say_table
from treepiece.data.rows import Row
from treepiece.decoding.types import DecodingConfig
from treepiece.definition import load_decoding
from treepiece.evaluation.outcomes import Outcome, write_errors
from treepiece.evaluation.scores import Scores
from treepiece.evaluation.significance import PairedTest, paired_test

_SHOWN = 3
_CONFUSIONS = 10


def evaluate(
    data: Data,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL", help=f"A folder that `treepiece train` or `treepiece export` wrote, {BUNDLED_HELP}"
        ),
    ],
    split: Split = "eval",
    rerank_threshold: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Rerank parses less probable than this: 0 is greedy, 1 reranks all.  [default: the model's]",
            show_default=False,
        ),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Evaluate the graphs of a bundle: float or int8; else PyTorch, if it can.")
    ] = None,
    spelling: Spelling = True,
    compare: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Another model, for a paired test on the same rows; `bundled` too."),
    ] = None,
    errors: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write each miss with its gold and predicted tree, as JSONL.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Evaluate this many rows only, evenly spread over DATA.")] = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Parse the utterances of DATA and compare the results with its parses.

    EM is the share of frames with the right labels, order and spans, EM-S that of right skeletons. Intervals are
    95 % bootstrap intervals. Rows whose utterance is too long for the encoder are counted, but not scored.

    Examples:

    - `treepiece evaluate --model model topv2 --split eval`
    - `treepiece evaluate --model model my.tsv --errors misses.jsonl --json`
    - `treepiece evaluate --model bundle my.tsv --precision int8`
    - `treepiece evaluate --model model my.tsv --compare bundled`
    """
    predictor = open_predictor(model, precision, _decoding(model, rerank_threshold), spelling=spelling)
    other = open_predictor(compare, spelling=spelling) if compare else None
    rows = _spread(load_rows(data, split=split, strict=strict), limit)
    found = _predict(predictor, rows)
    outcomes = list(found.by_row.values())
    scores = predictor.score(outcomes)
    result = scores.to_json() | {"unparsable": len(found.left_out)}
    test = None
    if other is not None:
        test = _compare(found.by_row, _predict(other, rows).by_row)
        result["compare"] = {"model": str(compare), **vars(test)}
    if errors is not None:
        note(f"{errors}: {write_errors(errors, outcomes):,} misses")
    if as_json:
        say_json(result)
    else:
        _draw(scores, len(found.left_out), f"{model} on {data}", test, str(compare))


def _decoding(model: str, rerank_threshold: float | None) -> DecodingConfig | None:
    """Return a model's settings of decoding with another threshold; None for its own."""
    if rerank_threshold is None:
        return None
    threshold = fraction("--rerank-threshold", rerank_threshold)
    return replace(load_decoding(read_bundle(find_graphs(model), check=False)), rerank_threshold=threshold)


def _spread(rows: list[Row], limit: int | None) -> list[Row]:
    if limit is None or limit >= len(rows):
        return rows
    limit = whole_number("--limit", limit, 1)
    return [rows[place * len(rows) // limit] for place in range(limit)]


def _predict(predictor: Predictor, rows: Sequence[Row]) -> Predictions:
    with ProgressBars("rows") as bars:
        found = predictor.predict(rows, bars)
    for reason in found.left_out[:_SHOWN]:
        note(f"not parsed: {reason}")
    return found


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
            ("decoder passes per tree", scores.passes),
            ("invalid outputs", scores.invalid),
            ("rows too long to parse", n_left_out),
        ],
    )
    for name, parts in (("domain", scores.by_domain), ("depth", scores.by_depth), ("skeleton", scores.by_seen)):
        if parts:
            rows = [(part, one.rows, f"{one.em:.4f}", f"{one.em_s:.4f}") for part, one in parts.items()]
            say_table("", rows, head=(name, "rows", "EM", "EM-S"))
    if scores.confusions:
        errors = [(one.gold or "(none)", one.predicted or "(none)", one.count) for one in scores.confusions]
        say_table("Label errors", errors[:_CONFUSIONS], head=("gold", "predicted", "times"))
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
