"""The best partition alone, which is what encoding needs.

The recursion of `lattice` with max for `combine`, run while units with placeholders are matched: as such a unit sits on
a node in one way only, nothing has to be kept but the best score of each subtree and the unit that gives it. The arrays
of a lattice cost far more than that to set up, above all for a single tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from treepiece.tokenizer.forest import Forest
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.shape import HOLE

Way = tuple[float, tuple[int, ...]]
"""A fragment laid on a subtree: the sum of the best scores of the subtrees it cuts off, and those subtrees."""


class BestPartitions:
    """The best unit of every subtree of a forest, and of trees above them; of equally good ones the lowest id wins."""

    def __init__(self, matcher: Matcher, forest: Forest, log_p: Sequence[float]) -> None:
        self._matcher = matcher
        self._log_p = log_p
        self._unit: list[int] = []  # of each subtree, -1 where no partition exists
        self._below: list[tuple[int, ...]] = []  # the subtrees that this unit cuts off
        self._options: list[dict[int, Way]] = []  # what may be read at each subtree, fragment or HOLE
        for number, (label, children) in enumerate(zip(forest.labels, forest.children, strict=True)):
            ways = self._lay(label, children)
            score, unit, below = self._best(ways)
            options = {matcher.fragment[state]: way for state, way in ways.items()}
            options.pop(-1, None)  # of states in which no fragment ends
            if unit >= 0:
                options[HOLE] = (score, (number,))
            self._unit.append(unit)
            self._below.append(below)
            self._options.append(options)

    def units(self, label: int, children: tuple[int, ...], *, level_order: bool = False) -> tuple[int, ...] | None:
        """Return the units of the best partition of a tree, given its children's numbers; None where there is none."""
        _, first, roots = self._best(self._lay(label, children))
        if first < 0:
            return None
        unit, below = self._unit, self._below
        if level_order:
            agenda = [*roots]
            for root in agenda:
                agenda += below[root]
            return (first, *[unit[root] for root in agenda])
        ids = [first]
        stack = [*roots[::-1]]
        while stack:
            root = stack.pop()
            ids.append(unit[root])
            stack += below[root][::-1]
        return tuple(ids)

    def _lay(self, label: int, children: tuple[int, ...]) -> dict[int, Way]:
        """Return every state that reading a node's children can lead to, with the way there."""
        steps = self._matcher.step
        start = self._matcher.start.get((label, len(children)))
        ways: dict[int, Way] = {} if start is None else {start: (0.0, ())}
        for child in children:
            options = self._options[child].items()
            after: dict[int, Way] = {}
            for state, way in ways.items():
                step = steps[state]
                for symbol, (more, cut_off) in options:
                    if symbol in step:
                        after[step[symbol]] = (way[0] + more, way[1] + cut_off) if cut_off else way
            ways = after
        return ways

    def _best(self, ways: dict[int, Way]) -> tuple[float, int, tuple[int, ...]]:
        """Return the score, the unit and the subtrees cut off of the best way that is a whole unit."""
        best, best_unit = -math.inf, -1
        best_below: tuple[int, ...] = ()
        unit_at = self._matcher.unit_at
        for state, (score, below) in ways.items():
            unit = unit_at[state]
            if unit >= 0:
                score += self._log_p[unit]
                if score > best or (score == best and unit < best_unit):
                    best, best_unit, best_below = score, unit, below
        return best, best_unit, best_below
