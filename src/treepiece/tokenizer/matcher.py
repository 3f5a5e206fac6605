"""Finds every unit at every subtree, in one pass from the leaves up.

A *fragment* is a label followed by the fragments of its children; a unit is a fragment, and so is every part of one. A
trie over child fragments tells which fragments there are: a state stands for a label with the children read so far, and
reading a child leads on by a fragment found at that child, or by a cut, where another unit will be joined.

- Units with placeholders cut where they have a HOLE, so a unit sits on a node in at most one way.
- Units without placeholders may cut anywhere: in their trie a cut leads back to the same state. Such a unit can sit on
  a node in several ways (which two of five equal children?). Ways that reach the same state are combined there and then
  into one node of the lattice, so that a node with a thousand children costs a thousand steps.
"""

from __future__ import annotations

from collections.abc import Iterable

from treepiece.tokenizer.forest import Forest
from treepiece.tokenizer.lattice import JOIN, Cuts, Lattice, LatticeBuilder, cut_node, pack_cut
from treepiece.tokenizer.shape import CLOSE, HOLE, Shape, count_children

_LONGEST = 16
"""How many cuts a way may list before they go into a lattice node of their own: keeps wide nodes linear."""
ANY = -1
"""In place of a number of children, where a unit may be cut anywhere and so takes any number."""


class Matcher:
    """The trie of a vocabulary."""

    def __init__(self, shapes: Iterable[Shape], *, cut_anywhere: bool) -> None:
        self.cut_anywhere = cut_anywhere
        self._length: list[int] = []  # state -> how many tokens lead to it
        self.start: dict[tuple[int, int], int] = {}  # label, number of children or ANY -> first state
        self.step: list[dict[int, int]] = []  # state -> fragment or HOLE -> state
        self.shift: list[int] = []  # state -> its length as a slot to add to a cut
        self.fragment: list[int] = []  # state -> the fragment that ends here, or -1
        self.unit: list[int] = []  # fragment -> its unit, or -1
        for unit, shape in enumerate(shapes):
            self.unit[self._add(shape)] = unit
        self.unit_at = [self.unit[fragment] if fragment >= 0 else -1 for fragment in self.fragment]  # state -> unit

    def match(self, forest: Forest) -> tuple[Lattice, list[int]]:
        """Return the lattice of a forest, and the lattice node of each subtree."""
        return _Match(self).run(forest)

    def _add(self, shape: Shape) -> int:
        path: list[tuple[int, int]] = []  # of each open node: its state, and the place of its first token
        fragment = -1
        n_children = count_children(shape)
        for place, token in enumerate(shape):
            if token >= 0:
                key = (token, ANY if self.cut_anywhere else n_children[place])
                if key not in self.start:
                    self.start[key] = self._new_state(1)
                path.append((self.start[key], place))
                continue
            state, begin = path.pop()
            if token == CLOSE:
                fragment = self._end_fragment(state)
                if not path:
                    break
                state, outer = path.pop()
                path.append((self._follow(state, fragment, place + 1 - begin), outer))
            else:
                path.append((self._follow(state, HOLE, 1), begin))
        return fragment

    def _end_fragment(self, state: int) -> int:
        if self.fragment[state] < 0:
            self.fragment[state] = len(self.unit)
            self.unit.append(-1)
        return self.fragment[state]

    def _follow(self, state: int, symbol: int, size: int) -> int:
        step = self.step[state]
        if symbol not in step:
            step[symbol] = self._new_state(self._length[state] + size)
        return step[symbol]

    def _new_state(self, length: int) -> int:
        state = len(self.step)
        self.step.append({HOLE: state} if self.cut_anywhere else {})
        self._length.append(length)
        # Where the holes of a unit lie is written in its shape, unless it has none and was cut anywhere.
        self.shift.append(pack_cut(length, 0) if self.cut_anywhere else 0)
        self.fragment.append(-1)
        return state


class _Match:
    """One pass over a forest."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._builder = LatticeBuilder()
        self._top = 0  # the highest level among the nodes below the subtree that is being matched

    def run(self, forest: Forest) -> tuple[Lattice, list[int]]:
        """Return the lattice and the node of each subtree."""
        matcher, builder = self._matcher, self._builder
        nodes: list[int] = []
        options: list[dict[int, Cuts]] = []  # for each subtree: what may be read there, fragment or HOLE -> cuts
        for label, children in zip(forest.labels, forest.children, strict=True):
            self._top = 0
            start = matcher.start.get((label, ANY if matcher.cut_anywhere else len(children)))
            ways: dict[int, Cuts] = {} if start is None else {start: ()}
            for child in children:
                ways = self._read_child(ways, nodes[child], options[child])
            found: dict[int, Cuts] = {}
            for state, cuts in ways.items():
                fragment = matcher.fragment[state]
                if fragment >= 0:
                    found[fragment] = cuts
                    if matcher.unit[fragment] >= 0:
                        builder.add_edge(matcher.unit[fragment], cuts)
            node = builder.end_node(self._top + 1)
            nodes.append(node)
            found[HOLE] = (node,)
            options.append(found)
        return Lattice(builder), nodes

    def _read_child(self, ways: dict[int, Cuts], child: int, options: dict[int, Cuts]) -> dict[int, Cuts]:
        steps, shifts = self._matcher.step, self._matcher.shift
        if self._builder.level[child] > self._top:
            self._top = self._builder.level[child]
        after: dict[int, Cuts] = {}
        for state, cuts in ways.items():
            step, shift = steps[state], shifts[state]
            for symbol, inner in options.items():
                if symbol not in step:
                    continue
                target = step[symbol]
                if shift:
                    after[target] = self._meet(after.get(target), cuts + tuple([cut + shift for cut in inner]))
                else:
                    after[target] = cuts + inner
        return after

    def _meet(self, other: Cuts | None, way: Cuts) -> Cuts:
        """Return a way to a state of a unit that was cut anywhere, combined with another way to the same state."""
        if len(way) > _LONGEST:
            way = self._join(way)
        return way if other is None else self._join(other, way)

    def _join(self, *ways: Cuts) -> Cuts:
        level = 1 + max([self._builder.level[cut_node(cut)] for cuts in ways for cut in cuts], default=0)
        self._top = max(self._top, level)
        for cuts in ways:
            self._builder.add_edge(JOIN, cuts)
        return (self._builder.end_node(level),)
