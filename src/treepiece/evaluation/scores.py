"""Scores of a parser: exact match over all rows and by group, and the most frequent label confusions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from treepiece.errors import DataError
from treepiece.evaluation.outcomes import Outcome
from treepiece.evaluation.significance import interval
from treepiece.trees.node import Node, is_slot

_Name = TypeVar("_Name", str, int)


@dataclass(frozen=True)
class GroupScores:
    """The exact match scores of a group of rows."""

    rows: int
    em: float
    em_s: float


@dataclass(frozen=True)
class Scores:
    """Exact match of frames (`em`) and of skeletons (`em_s`) as fractions of rows, with 95 % bootstrap intervals.

    `passes` is the mean number of decoder passes per tree; `invalid` counts predictions that are not valid TOP frames.
    `by_seen` separates the rows whose gold skeleton occurs in the training data from the others.
    """

    rows: int
    em: float
    em_s: float
    em_low: float
    em_high: float
    em_s_low: float
    em_s_high: float
    passes: float
    invalid: int
    by_domain: dict[str, GroupScores]
    by_depth: dict[str, GroupScores]
    by_seen: dict[str, GroupScores]
    confusions: tuple[Confusion, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the scores as a value that `json.dumps` accepts."""
        value = asdict(self)
        first = {name: value.pop(name) for name in ("rows", "em", "em_s")}
        for name in ("em", "em_s"):
            first[f"{name}_interval"] = [value.pop(f"{name}_low"), value.pop(f"{name}_high")]
        return first | value


def score(outcomes: Iterable[Outcome], seen: Collection[Node] | None = None) -> Scores:
    """Return the scores of outcomes; `seen` are the skeletons of the training data, None if unknown.

    >>> from treepiece.trees.frame import Frame
    >>> gold = Frame.from_brackets("[IN:A x [SL:B y ] ]")
    >>> scores = score([Outcome(gold, gold, "alarm", passes=3)], seen=[])
    >>> scores.em, scores.passes, scores.by_seen
    (1.0, 3.0, {'unseen': GroupScores(rows=1, em=1.0, em_s=1.0)})
    """
    outcomes = list(outcomes)
    if not outcomes:
        raise DataError("there are no rows to score: expected at least one")
    em_low, em_high = interval(np.array([outcome.is_exact for outcome in outcomes]))
    em_s_low, em_s_high = interval(np.array([outcome.is_skeleton for outcome in outcomes]))
    known = None if seen is None else frozenset(seen)
    return Scores(
        **asdict(_score_group(outcomes)),
        em_low=em_low,
        em_high=em_high,
        em_s_low=em_s_low,
        em_s_high=em_s_high,
        passes=sum(outcome.passes for outcome in outcomes) / len(outcomes),
        invalid=sum(not outcome.is_valid for outcome in outcomes),
        by_domain=_score_groups(outcomes, lambda outcome: outcome.domain),
        by_depth=_score_groups(outcomes, lambda outcome: outcome.depth),
        by_seen={}
        if known is None
        else _score_groups(outcomes, lambda outcome: "seen" if outcome.gold.skeleton in known else "unseen"),
        confusions=find_confusions(outcomes),
    )


def _score_groups(outcomes: Sequence[Outcome], name: Callable[[Outcome], _Name | None]) -> dict[str, GroupScores]:
    """Return the scores by group, sorted; rows whose group is None are left out."""
    groups: dict[_Name, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        group = name(outcome)
        if group is not None:
            groups[group].append(outcome)
    # Sorted before conversion to strings, so that 10 follows 9.
    return {str(group): _score_group(groups[group]) for group in sorted(groups)}


def _score_group(outcomes: Sequence[Outcome]) -> GroupScores:
    rows = len(outcomes)
    return GroupScores(
        rows=rows,
        em=sum(outcome.is_exact for outcome in outcomes) / rows,
        em_s=sum(outcome.is_skeleton for outcome in outcomes) / rows,
    )


LabelError = tuple[str | None, str | None]
"""The gold label and the predicted label; None if one of them is missing."""


@dataclass(frozen=True)
class Confusion:
    """The number of times that one label was predicted for another, and the first such row.

    `gold` is None for a spurious label, `predicted` is None for a missing one.
    """

    gold: str | None
    predicted: str | None
    count: int
    line: int
    utterance: str


def find_confusions(outcomes: Iterable[Outcome], *, most: int = 20) -> tuple[Confusion, ...]:
    """Return the most frequent label errors, ties in alphabetical order.

    Trees that differ in structure only, and wrong spans, are not label errors.
    """
    found: dict[LabelError, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if not outcome.is_skeleton:
            trees = outcome.gold.skeleton, outcome.predicted.skeleton
            for error in label_errors(*([node.label for node in tree.nodes()] for tree in trees)):
                found[error].append(outcome)
    ranked = sorted(found, key=lambda error: (-len(found[error]), error[0] or "", error[1] or ""))
    return tuple(
        Confusion(*error, len(found[error]), found[error][0].line, found[error][0].gold.utterance)
        for error in ranked[:most]
    )


def label_errors(gold: Sequence[str], predicted: Sequence[str]) -> list[LabelError]:
    """Return the minimum edit script between two lists of labels in pre-order, from left to right.

    An error is a substitution, a missing label or a spurious label. An intent is never substituted for a slot. Among
    scripts with equally few errors, substitutions are as far to the left as possible.

    >>> label_errors(["IN:A", "SL:B", "SL:C"], ["IN:D", "SL:C"])
    [('IN:A', 'IN:D'), ('SL:B', None)]
    """
    costs = _costs(gold, predicted)
    errors: list[LabelError] = []
    row = column = 0
    while row < len(gold) or column < len(predicted):
        here = costs[row][column]
        if row < len(gold) and column < len(predicted):
            pair = gold[row], predicted[column]
            if here == costs[row + 1][column + 1] + _pair_cost(*pair):
                if pair[0] != pair[1]:
                    errors.append(pair)
                row, column = row + 1, column + 1
                continue
        if row < len(gold) and here == costs[row + 1][column] + 1:
            errors.append((gold[row], None))
            row += 1
        else:
            errors.append((None, predicted[column]))
            column += 1
    return errors


def _costs(gold: Sequence[str], predicted: Sequence[str]) -> list[list[float]]:
    """Return the edit distance between the suffixes of both lists that start at each row and column."""
    below: list[float] = [float(left) for left in range(len(predicted), -1, -1)]
    costs = [below]
    for gold_label in reversed(gold):
        here = [below[-1] + 1]
        for column in range(len(predicted) - 1, -1, -1):
            pair = below[column + 1] + _pair_cost(gold_label, predicted[column])
            here.append(min(pair, below[column] + 1, here[-1] + 1))
        below = here[::-1]
        costs.append(below)
    return costs[::-1]


def _pair_cost(gold: str, predicted: str) -> float:
    if gold == predicted:
        return 0.0
    return 1.0 if is_slot(gold) == is_slot(predicted) else float("inf")
