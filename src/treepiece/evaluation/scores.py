"""How well a parser does on rows: exact match, for all rows and for groups of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from treepiece.errors import DataError
from treepiece.evaluation.bootstrap import interval
from treepiece.evaluation.confusions import Confusion, find_confusions
from treepiece.evaluation.outcomes import Outcome
from treepiece.trees.node import Node

_Name = TypeVar("_Name", str, int)


@dataclass(frozen=True)
class Part:
    """The scores of a group of rows."""

    rows: int
    em: float
    em_s: float


@dataclass(frozen=True)
class Scores:
    """Fractions of rows from 0 to 1 with their 95 % bootstrap intervals, and what there is to know about the misses.

    `em` counts frames that are right, `em_s` skeletons; `passes` is the mean number of decoder passes a tree;
    `invalid` counts predicted frames that TOP text cannot say. `by_seen` tells rows whose gold skeleton training had
    from the others.
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
    by_domain: dict[str, Part]
    by_depth: dict[str, Part]
    by_seen: dict[str, Part]
    confusions: tuple[Confusion, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the scores as a value that `json.dumps` can write."""
        return {
            "rows": self.rows,
            "em": self.em,
            "em_s": self.em_s,
            "em_interval": [self.em_low, self.em_high],
            "em_s_interval": [self.em_s_low, self.em_s_high],
            "passes": self.passes,
            "invalid": self.invalid,
            "by_domain": _parts_to_json(self.by_domain),
            "by_depth": _parts_to_json(self.by_depth),
            "by_seen": _parts_to_json(self.by_seen),
            "confusions": [asdict(confusion) for confusion in self.confusions],
        }


def score(outcomes: Iterable[Outcome], seen: Collection[Node] | None = None) -> Scores:
    """Return the scores of outcomes; `seen` holds the skeletons of the training data, None if they are not known.

    >>> from treepiece.trees.frame import Frame
    >>> gold = Frame.from_brackets("[IN:A x [SL:B y ] ]")
    >>> scores = score([Outcome(gold, gold, "alarm", passes=3)], seen=[])
    >>> scores.em, scores.passes, scores.by_seen
    (1.0, 3.0, {'unseen': Part(rows=1, em=1.0, em_s=1.0)})
    """
    outcomes = list(outcomes)
    if not outcomes:
        raise DataError("there are no rows to score: expected one at least")
    whole = _part(outcomes)
    em_low, em_high = interval(np.array([outcome.is_exact for outcome in outcomes]))
    em_s_low, em_s_high = interval(np.array([outcome.is_skeleton for outcome in outcomes]))
    return Scores(
        rows=whole.rows,
        em=whole.em,
        em_s=whole.em_s,
        em_low=em_low,
        em_high=em_high,
        em_s_low=em_s_low,
        em_s_high=em_s_high,
        passes=sum(outcome.passes for outcome in outcomes) / whole.rows,
        invalid=sum(not outcome.is_valid for outcome in outcomes),
        by_domain=_group(outcomes, lambda outcome: outcome.domain),
        by_depth=_group(outcomes, lambda outcome: outcome.depth),
        by_seen={} if seen is None else _by_seen(outcomes, frozenset(seen)),
        confusions=find_confusions(outcomes),
    )


def _by_seen(outcomes: Sequence[Outcome], seen: Collection[Node]) -> dict[str, Part]:
    return _group(outcomes, lambda outcome: "seen" if outcome.gold.skeleton in seen else "unseen")


def _group(outcomes: Sequence[Outcome], name: Callable[[Outcome], _Name | None]) -> dict[str, Part]:
    """Return the scores of rows by name, names in order; rows without a name are left out."""
    groups: dict[_Name, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        group = name(outcome)
        if group is not None:
            groups[group].append(outcome)
    # Numbers are sorted before they become texts: 10 comes after 9.
    return {str(group): _part(groups[group]) for group in sorted(groups)}


def _part(outcomes: Sequence[Outcome]) -> Part:
    rows = len(outcomes)
    return Part(
        rows=rows,
        em=sum(outcome.is_exact for outcome in outcomes) / rows,
        em_s=sum(outcome.is_skeleton for outcome in outcomes) / rows,
    )


def _parts_to_json(parts: dict[str, Part]) -> dict[str, dict[str, float]]:
    return {name: asdict(part) for name, part in parts.items()}
