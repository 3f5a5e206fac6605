"""How well a parser copes with text as people type it, and with what it was not trained for.

    python -m experiments robustness [--model BUNDLE] [--split eval] [--out-of-scope FILE] [--rows N] [--json]

Rows of TOPv2 are scored as they are and with one kind of noise each (`treepiece.training.noise`); a typo is in a word
of five letters or more. With FILE, requests of other domains are told from the rows by their confidence; pairs of rows
joined by "and", "then" or a comma are several requests in one. Nothing is fitted.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.parts import Json
from experiments.topv2 import add_topv2, rows_of_split
from treepiece.bundle import BUNDLED
from treepiece.cli.console import ProgressBars, say_table
from treepiece.data.out_of_scope import read_requests
from treepiece.evaluation.calibration import Bools, Floats, expected_calibration_error, selective_accuracy
from treepiece.evaluation.outcomes import compare
from treepiece.runtime.parser import Parser
from treepiece.runtime.result import Result
from treepiece.training.noise import NoiseKind, make_noise
from treepiece.training.scoping import join_texts
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node

CLEAN = "as it is"
TYPOS = (NoiseKind.SWAPPED_LETTERS, NoiseKind.NEARBY_KEY, NoiseKind.DROPPED_LETTER, NoiseKind.DOUBLED_LETTER)
LETTERS = 5
"""The least letters of a word that gets a typo."""
JOINS = (" and ", " then ", ", ")
THRESHOLDS = (0.0, 0.3, 0.5, 0.7, 0.9)
_TRIES = 30
_BATCH = 256
_COVERAGE = 0.95


@dataclass(frozen=True)
class Scored:
    """The confidences of some texts, and whether each parse is right."""

    confidences: Floats
    right: Bools
    in_scope: Floats
    several: Floats
    corrected: int

    def to_json(self) -> Json:
        """Return the summary."""
        return {
            "rows": len(self.right),
            "em": float(self.right.mean()),
            "confidence": float(self.confidences.mean()),
            "calibration_error": expected_calibration_error(self.confidences, self.right),
            "corrected": self.corrected,
        }


def noised(frames: Sequence[Frame], kind: NoiseKind, seed: int) -> list[Frame]:
    """Return frames with a kind of noise; a frame that cannot have it stays as it is."""
    noise, rng = make_noise(kind), np.random.default_rng(seed)
    return [_with_typo(frame, noise, rng) if kind in TYPOS else noise(frame, rng) for frame in frames]


def _with_typo(frame: Frame, noise: Callable[[Frame, np.random.Generator], Frame], rng: np.random.Generator) -> Frame:
    """Return a frame with a typo in a word that is long enough, if there is one."""
    if not any(sum(map(str.isalpha, word)) >= LETTERS for word in frame.words):
        return frame
    for _ in range(_TRIES):
        found = noise(frame, rng)
        changed = [old for old, new in zip(frame.words, found.words, strict=False) if old != new]
        if changed and sum(map(str.isalpha, changed[0])) >= LETTERS:
            return found
    return frame


def parse_all(parser: Parser, texts: Sequence[str], bars: ProgressBars, stage: str) -> list[Result]:
    """Return the result of each text."""
    found: list[Result] = []
    for start in range(0, len(texts), _BATCH):
        found += parser.batch(texts[start : start + _BATCH])
        bars.update(stage, len(found), len(texts))
    return found


def summarise_results(results: Sequence[Result], right: Sequence[bool]) -> Scored:
    """Return the scores of results."""
    return Scored(
        np.array([one.confidence for one in results]),
        np.array(right, bool),
        np.array([1.0 if one.in_scope is None else one.in_scope for one in results]),
        np.array([0.0 if one.several is None else one.several for one in results]),
        sum(bool(one.corrections) for one in results),
    )


def score_frames(parser: Parser, frames: Sequence[Frame], bars: ProgressBars, stage: str) -> Scored:
    """Return the scores of a parser on the utterances of frames."""
    results = parse_all(parser, [frame.utterance for frame in frames], bars, stage)
    right = []
    for frame, result in zip(frames, results, strict=True):
        best = result.best
        outcome = compare(
            frame, best.frame.skeleton, [leaf.chars for leaf in best.leaves], domain=None, passes=best.passes
        )
        right.append(outcome.is_exact)
    return summarise_results(results, right)


def area_under_curve(inside: Floats, outside: Floats) -> float:
    """Return the probability that a text in scope has a higher value than one out of scope (AUROC).

    >>> area_under_curve(np.array([0.9, 0.8]), np.array([0.1, 0.85]))
    0.75
    """
    values = np.concatenate([inside, outside])
    ranks = np.empty(len(values))
    order = values.argsort(kind="stable")
    ranks[order] = np.arange(1, len(values) + 1)
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.bincount(group, ranks) / counts)[group]  # equal values share the mean of their ranks
    above = ranks[: len(inside)].sum() - len(inside) * (len(inside) + 1) / 2
    return float(above / (len(inside) * len(outside)))


def accepted(inside: npt.NDArray[np.float64], outside: npt.NDArray[np.float64]) -> float:
    """Return the share of the texts out of scope that reach the value that 95 % of those in scope reach."""
    return float((outside >= np.quantile(inside, 1 - _COVERAGE)).mean())


def measure(args: Namespace) -> Json:
    """Return all figures."""
    parser = Parser(args.model)
    plain = Parser(args.model, spelling=False)
    frames = [row.frame for row in rows_of_split(args.topv2, args.split) if row.frame is not None]
    if 0 < args.rows < len(frames):
        frames = [frames[place * len(frames) // args.rows] for place in range(args.rows)]
    result: Json = {"model": str(args.model), "split": args.split, "rows": len(frames), "seed": args.seed}
    kinds: dict[str, Sequence[Frame]] = {CLEAN: frames}
    kinds |= {kind.value: noised(frames, kind, args.seed) for kind in NoiseKind}
    with ProgressBars("texts") as bars:
        scored = {name: score_frames(parser, few, bars, name) for name, few in kinds.items()}
        without = {name: score_frames(plain, kinds[name], bars, f"{name}, no spelling") for name in (CLEAN, *TYPOS)}
        result["noise"] = {name: one.to_json() for name, one in scored.items()}
        result["without_spelling"] = {name: one.to_json() for name, one in without.items()}
        groups = {CLEAN: scored[CLEAN], "typos": _joined([scored[kind] for kind in TYPOS])}
        clean = scored[CLEAN]
        if args.out_of_scope:
            texts = [one.text for one in read_requests(args.out_of_scope)]
            outside = summarise_results(parse_all(parser, texts, bars, "out of scope"), [False] * len(texts))
            groups["out of scope"] = outside
            result["out_of_scope"] = {
                "rows": len(texts),
                "auroc": area_under_curve(clean.confidences, outside.confidences),
                "auroc_in_scope": area_under_curve(clean.in_scope, outside.in_scope),
                "accepted": accepted(clean.confidences, outside.confidences),
                "accepted_in_scope": accepted(clean.in_scope, outside.in_scope),
            }
        pairs = _pairs(frames, args.seed)
        answers = parse_all(parser, [text for text, _ in pairs], bars, "joined rows")
        apart = [_are_right(answer, gold) for answer, (_, gold) in zip(answers, pairs, strict=True)]
        joined = summarise_results(answers, [False] * len(pairs))
        groups["two requests"] = joined
    result["two_requests"] = {
        "rows": len(pairs),
        "auroc": area_under_curve(joined.several, clean.several),
        "found": float((joined.several > 0.5).mean()),
        "both_right": float(np.mean(apart)),
        "found_in_single_rows": float((clean.several > 0.5).mean()),
        "confidence": float(joined.confidences.mean()),
    }
    result["min_confidence"] = {
        str(threshold): {name: _selected(one, threshold) for name, one in groups.items()} for threshold in THRESHOLDS
    }
    return result


def _selected(scored: Scored, threshold: float) -> dict[str, float]:
    """Return the share of texts that are answered with a confidence, and the share of these answers that are right."""
    answered, right = selective_accuracy(scored.confidences, scored.right, threshold)
    return {"answered": answered, "right": right}


def _joined(parts: Sequence[Scored]) -> Scored:
    return Scored(
        np.concatenate([one.confidences for one in parts]),
        np.concatenate([one.right for one in parts]),
        np.concatenate([one.in_scope for one in parts]),
        np.concatenate([one.several for one in parts]),
        sum(one.corrected for one in parts),
    )


def _pairs(frames: Sequence[Frame], seed: int) -> list[tuple[str, tuple[Frame, Frame]]]:
    """Return a pair of rows in one text for every fifth row, and the frames of both."""
    rng = np.random.default_rng(seed)
    found = []
    for first in frames[::5]:
        second = frames[int(rng.integers(len(frames)))]
        join = JOINS[int(rng.integers(len(JOINS)))]
        found.append((join_texts(first.utterance, second.utterance, join), (first, second)))
    return found


def _are_right(result: Result, gold: tuple[Frame, Frame]) -> bool:
    """Return whether both requests of a text are parsed right, up to the case and the marks that joining changes."""
    found = [_plain(part.result.best.frame) for part in result.requests]
    return found == [_plain(frame) for frame in gold]


def _plain(frame: Frame) -> tuple[Node, list[str]]:
    return frame.skeleton, [leaf.text.lower().strip(" .?!") for leaf in frame.leaves]


def show(result: Mapping[str, Json]) -> None:
    """Print the figures as tables."""
    rows = [
        (
            name.replace("_", " "),
            f"{100 * one['em']:.2f}",
            f"{100 * result['without_spelling'][name]['em']:.2f}" if name in result["without_spelling"] else "",
            f"{100 * one['confidence']:.1f}",
            f"{one['calibration_error']:.3f}",
            f"{one['corrected']:,}",
        )
        for name, one in result["noise"].items()
    ]
    head = ("text", "EM, %", "EM without spelling, %", "confidence, %", "calibration error", "corrected texts")
    say_table(f"{result['model']} on {result['rows']:,} rows of {result['split']}", rows, head=head)
    for name in ("out_of_scope", "two_requests"):
        if name in result:
            say_table(name.replace("_", " "), [(key, f"{value:.4g}") for key, value in result[name].items()])
    groups = list(result["min_confidence"]["0.0"])
    table = [
        (threshold, *(f"{100 * few[name]['answered']:.1f} / {100 * few[name]['right']:.1f}" for name in groups))
        for threshold, few in result["min_confidence"].items()
    ]
    say_table("min_confidence: answered / right of these, %", table, head=("", *groups))


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_topv2(parser)
    add = parser.add_argument
    add("--model", default=BUNDLED, help="a bundle; by default the one that comes with treepiece")
    add("--split", default="eval", help="the split of TOPv2  [default: %(default)s]")
    add("--rows", type=int, default=0, metavar="N", help="score this many rows, evenly spread  [default: all]")
    add("--seed", type=int, default=0, help="of the noise  [default: %(default)s]")
    add("--out-of-scope", type=Path, metavar="FILE", help="requests of other domains, one per line")
    add("--json", action="store_true", help="print one JSON object")


def run(args: Namespace) -> None:
    """Measure and print."""
    result = measure(args)
    if args.json:
        print(json.dumps(result))
    else:
        show(result)
