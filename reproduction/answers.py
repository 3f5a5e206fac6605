"""What a parser answers to all rows of a split, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from reproduction.calibration import judge
from reproduction.decodings import Decoding, decodings_for, set_up
from reproduction.store import Json
from reproduction.summary import summarise
from treepiece.bundle import TRAINING
from treepiece.cli.console import progress
from treepiece.data.rows import Row
from treepiece.decoding.parse import Parse
from treepiece.evaluation.comparison import compare
from treepiece.evaluation.outcomes import Outcome
from treepiece.runtime.cores import count_cores
from treepiece.runtime.graphs import as_ids
from treepiece.runtime.parser import Parser
from treepiece.training.examples import Example, make_examples
from treepiece.training.fingerprints import skeleton_digest
from treepiece.trees.node import Node

EXACT, SKELETON, WRONG, NOT_PARSED = "=s.-"
"""What became of a row, in one character: all rows of a split are one text, for tests between parsers."""
N_TIMED = 200
ROUNDS = 3


def score_rows(parser: Parser, rows: Sequence[Row], decoding: Decoding, title: str) -> Json:
    """Return the scores of a parser on rows, what became of each row, and how far confidences can be trusted."""
    examples, left_out = make_examples(rows, parser.subwords)
    beams = _parse(parser, examples, decoding, title)
    outcomes = [_outcome(example, best) for example, (best, *_) in zip(examples, beams, strict=True)]
    in_beam = [
        outcome.is_exact or any(_outcome(example, parse).is_exact for parse in others)
        for example, outcome, (_, *others) in zip(examples, outcomes, beams, strict=True)
    ]
    return {
        **summarise(outcomes, _seen(parser, outcomes)),
        "unparsable": len(left_out),
        "in_beam": float(np.mean(in_beam)),
        "row_outcomes": _write_outcomes(rows, examples, outcomes),
        "calibration": judge([best for best, *_ in beams], outcomes, parser.temperatures),
    }


def time_decodings(parser: Parser, rows: Sequence[Row]) -> Json:
    """Return the milliseconds of one parse for each way to search.

    Subwords in, skeleton and spans out. The ways take turns, text by text, so that a busy machine slows all of them
    alike, and a text counts with the median of its rounds.
    """
    examples, _ = make_examples(rows[:: max(1, len(rows) // N_TIMED)][:N_TIMED], parser.subwords)
    decodings = decodings_for(parser.definition)
    times = {decoding.name: np.zeros((ROUNDS, len(examples))) for decoding in decodings}
    for turn in range(ROUNDS):
        for place, example in enumerate(examples):
            for decoding in decodings:
                set_up(parser.model, parser.definition, decoding)
                begin = perf_counter()
                parser.model.parse(as_ids([example.subwords.ids]), **decoding.arguments)
                times[decoding.name][turn, place] = (perf_counter() - begin) * 1e3
    typical = {name: np.median(values, axis=0) for name, values in times.items()}
    return {
        name: {
            "rows": len(values),
            "median": float(np.median(values)),
            "mean": float(np.mean(values)),
            "p95": float(np.quantile(values, 0.95)),
        }
        for name, values in typical.items()
    }


def _parse(parser: Parser, examples: Sequence[Example], decoding: Decoding, title: str) -> list[list[Parse]]:
    """Return the parses of each utterance, the best first; each is parsed alone, as a user's would be."""
    set_up(parser.model, parser.definition, decoding)
    beams: list[list[Parse]] = []
    threads = ThreadPoolExecutor(count_cores())
    try:
        with progress() as bars:
            task = bars.add_task(title, total=len(examples), unit="rows")
            for (found,) in threads.map(
                lambda example: parser.model.parse(as_ids([example.subwords.ids]), **decoding.arguments), examples
            ):
                beams.append(found)
                bars.advance(task)
    finally:
        threads.shutdown(cancel_futures=True)  # Ctrl-C does not wait for all the rows that are left
    return beams


def _outcome(example: Example, parse: Parse) -> Outcome:
    chars = [example.subwords.chars(span) for span in parse.spans]
    return compare(example.frame, parse.skeleton, chars, domain=example.domain, passes=parse.passes, line=example.line)


def _seen(parser: Parser, outcomes: Iterable[Outcome]) -> set[Node]:
    """Return those of the gold skeletons that the model had in training."""
    known = set(parser.bundle.read_json(TRAINING).get("skeletons", ()))
    return {outcome.gold.skeleton for outcome in outcomes if skeleton_digest(outcome.gold.skeleton) in known}


def _write_outcomes(rows: Sequence[Row], examples: Sequence[Example], outcomes: Sequence[Outcome]) -> str:
    """Return one character a row: two parsers can be compared row by row, even if one could not read some."""
    marks = {
        id(example.frame): EXACT if outcome.is_exact else SKELETON if outcome.is_skeleton else WRONG
        for example, outcome in zip(examples, outcomes, strict=True)
    }
    return "".join(marks.get(id(row.frame), NOT_PARSED) for row in rows)
