"""Which labels a parser takes for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from treepiece.evaluation.outcomes import Outcome
from treepiece.trees.labels import is_slot

LabelError = tuple[str | None, str | None]
"""The gold label and the predicted one: None where there is none, never on both sides."""


@dataclass(frozen=True)
class Confusion:
    """How often one label was predicted for another, and the first row where it was.

    `gold` is None for a label too many, `predicted` is None for one that is missing.
    """

    gold: str | None
    predicted: str | None
    count: int
    line: int
    utterance: str


def find_confusions(outcomes: Iterable[Outcome], *, most: int = 20) -> tuple[Confusion, ...]:
    """Return the most frequent label errors, ties in alphabetical order.

    Trees whose labels agree but hang from different nodes, and spans that are wrong, add none.
    """
    counts: Counter[LabelError] = Counter()
    examples: dict[LabelError, Outcome] = {}
    for outcome in outcomes:
        if outcome.is_skeleton:
            continue
        gold, predicted = outcome.gold.skeleton, outcome.predicted.skeleton
        for error in label_errors([node.label for node in gold.nodes()], [node.label for node in predicted.nodes()]):
            counts[error] += 1
            examples.setdefault(error, outcome)
    ranked = sorted(counts, key=lambda error: (-counts[error], error[0] or "", error[1] or ""))
    return tuple(
        Confusion(*error, counts[error], examples[error].line, examples[error].gold.utterance)
        for error in ranked[:most]
    )


def label_errors(gold: Sequence[str], predicted: Sequence[str]) -> list[LabelError]:
    """Return the fewest errors that turn one list of labels in pre-order into the other, from left to right.

    An error is a label for another, a label missing or a label too many. An intent is never taken for a slot: one is
    missing then and the other too many. Of several ways with as few errors, pairs are made as far left as they can be.

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
    """Return by row and column the fewest errors between the labels from there on (edit distance, from the end)."""
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
