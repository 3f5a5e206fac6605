"""The best partition alone, which is what encoding needs.

The recursion of `lattice` with max for `combine`, run while units with placeholders are matched: as such a unit sits on
a node in one way only, nothing has to be kept but the best score of each subtree and the unit that gives it. A single
tree is encoded ten times as fast as through a lattice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from treepiece.tokenizer.forest import Forest
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.shape import HOLE

Way = tuple[float, tuple[int, ...]]
"""A fragment at a subtree: the sum of the best scores of the subtrees cut off, and those subtrees."""


class BestPartitions:
    """The best unit of every subtree of a forest; of equally good ones that with the lowest id."""

    def __init__(self, matcher: Matcher, forest: Forest, log_p: Sequence[float]) -> None:
        self._unit: list[int] = []  # of each subtree, -1 where no partition exists
        self._cut_off: list[tuple[int, ...]] = []  # the subtrees below that unit's placeholders
        unit_at = [matcher.unit[fragment] if fragment >= 0 else -1 for fragment in matcher.fragment]
        is_below = set().union(*forest.children)
        options: dict[int, dict[int, Way]] = {}  # for each subtree below others: what may be read there
        for number, (label, children) in enumerate(zip(forest.labels, forest.children, strict=True)):
            start = matcher.start.get((label, len(children)))
            ways: dict[int, Way] = {} if start is None else {start: (0.0, ())}
            for child in children:
                ways = _read_child(matcher.step, ways, options[child])
            best, best_unit = -math.inf, -1
            below: tuple[int, ...] = ()
            for state, way in ways.items():
                unit = unit_at[state]
                if unit >= 0:
                    score = way[0] + log_p[unit]
                    if score > best or (score == best and unit < best_unit):
                        best, best_unit, below = score, unit, way[1]
            self._unit.append(best_unit)
            self._cut_off.append(below)
            if number in is_below:
                fragments = {matcher.fragment[state]: way for state, way in ways.items()}
                fragments.pop(-1, None)  # of states in which no fragment ends
                options[number] = fragments | ({HOLE: (best, (number,))} if best_unit >= 0 else {})

    def units(self, tree: int, *, level_order: bool = False) -> tuple[int, ...] | None:
        """Return the units of a tree's best partition, None where there is no partition."""
        unit, cut_off = self._unit, self._cut_off
        if unit[tree] < 0:
            return None
        roots = [tree]
        if level_order:
            for root in roots:
                roots += cut_off[root]
            return tuple([unit[root] for root in roots])
        ids = []
        while roots:
            root = roots.pop()
            ids.append(unit[root])
            if cut_off[root]:
                roots += cut_off[root][::-1]
        return tuple(ids)


def _read_child(steps: Sequence[dict[int, int]], ways: dict[int, Way], options: dict[int, Way]) -> dict[int, Way]:
    after: dict[int, Way] = {}
    for state, (score, below) in ways.items():
        step = steps[state]
        for symbol, (more, inner) in options.items():
            if symbol in step:
                after[step[symbol]] = (score + more, below + inner)
    return after
