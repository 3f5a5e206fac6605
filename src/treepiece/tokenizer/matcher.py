"""The matcher: a trie of all units, which finds every match of every unit in one bottom-up pass.

A *fragment* is a label with the fragments of its children; a unit is a fragment, and so is each of its subtrees. A
state of the trie is a label with the children read so far. The next child leads to another state, either by a fragment
that matches at that child or by a cut, where another unit is attached.

- A unit with placeholders cuts exactly where it has a PLACEHOLDER, so it matches a node in at most one way.
- A unit without placeholders may cut anywhere: in its trie a cut leads back to the same state. It may match a node in
  several ways (which two of five equal children?). Matches that reach the same state are combined at once, in a JOIN
  node of the lattice, so that a node with a thousand children takes a thousand steps.
"""

from __future__ import annotations

from collections.abc import Iterable

from treepiece.tokenizer.corpus import Forest
from treepiece.tokenizer.lattice import JOIN, Cuts, Lattice, LatticeBuilder, cut_node, pack_cut
from treepiece.tokenizer.shape import CLOSE, PLACEHOLDER, Shape, count_children

_MAX_CUTS = 16
"""A partial match with more cuts moves them to a JOIN node, which keeps wide nodes linear."""
ANY = -1
"""The number of children of a node in a unit that may be cut anywhere: any number matches."""


class Matcher:
    """The trie of a vocabulary."""

    def __init__(self, shapes: Iterable[Shape], *, cut_anywhere: bool) -> None:
        self.cut_anywhere = cut_anywhere
        self._length: list[int] = []  # state -> number of tokens read
        self.start: dict[tuple[int, int], int] = {}  # label, number of children or ANY -> first state
        self.step: list[dict[int, int]] = []  # state -> fragment or PLACEHOLDER -> state
        self.shift: list[int] = []  # state -> its length as an offset to add to a cut
        self.fragment: list[int] = []  # state -> the fragment that ends here, or -1
        self.unit: list[int] = []  # fragment -> its unit, or -1
        for unit, shape in enumerate(shapes):
            self.unit[self._add(shape)] = unit
        self.unit_at = [self.unit[fragment] if fragment >= 0 else -1 for fragment in self.fragment]  # state -> unit

    def match(self, forest: Forest) -> tuple[Lattice, list[int]]:
        """Return the lattice of a forest and the lattice node of each subtree."""
        return _Match(self).run(forest)

    def _add(self, shape: Shape) -> int:
        path: list[tuple[int, int]] = []  # of each open node: its state, and the position of its first token
        fragment = -1
        n_children = count_children(shape)
        for position, token in enumerate(shape):
            if token >= 0:
                key = (token, ANY if self.cut_anywhere else n_children[position])
                if key not in self.start:
                    self.start[key] = self._new_state(1)
                path.append((self.start[key], position))
                continue
            state, begin = path.pop()
            if token == CLOSE:
                if self.fragment[state] < 0:
                    self.fragment[state] = len(self.unit)
                    self.unit.append(-1)
                fragment = self.fragment[state]
                if path:
                    state, outer = path.pop()
                    path.append((self._follow(state, fragment, position + 1 - begin), outer))
            else:
                path.append((self._follow(state, PLACEHOLDER, 1), begin))
        return fragment

    def _follow(self, state: int, symbol: int, size: int) -> int:
        step = self.step[state]
        if symbol not in step:
            step[symbol] = self._new_state(self._length[state] + size)
        return step[symbol]

    def _new_state(self, length: int) -> int:
        state = len(self.step)
        self.step.append({PLACEHOLDER: state} if self.cut_anywhere else {})
        self._length.append(length)
        # Only units that may be cut anywhere need the positions of cuts; others have placeholders in their shape.
        self.shift.append(pack_cut(length, 0) if self.cut_anywhere else 0)
        self.fragment.append(-1)
        return state


class _Match:
    """One bottom-up pass over a forest."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._builder = LatticeBuilder()
        self._top = 0  # the highest level of the lattice nodes below the current subtree

    def run(self, forest: Forest) -> tuple[Lattice, list[int]]:
        """Return the lattice and the node of each subtree."""
        matcher, builder = self._matcher, self._builder
        nodes: list[int] = []
        options: list[dict[int, Cuts]] = []  # of each subtree: fragment or PLACEHOLDER -> cuts
        for label, children in zip(forest.labels, forest.children, strict=True):
            self._top = 0
            start = matcher.start.get((label, ANY if matcher.cut_anywhere else len(children)))
            partial: dict[int, Cuts] = {} if start is None else {start: ()}
            for child in children:
                partial = self._read_child(partial, nodes[child], options[child])
            found: dict[int, Cuts] = {}
            for state, cuts in partial.items():
                fragment = matcher.fragment[state]
                if fragment >= 0:
                    found[fragment] = cuts
                    if matcher.unit[fragment] >= 0:
                        builder.add_edge(matcher.unit[fragment], cuts)
            node = builder.end_node(self._top + 1)
            nodes.append(node)
            found[PLACEHOLDER] = (node,)
            options.append(found)
        return Lattice(builder), nodes

    def _read_child(self, partial: dict[int, Cuts], child: int, options: dict[int, Cuts]) -> dict[int, Cuts]:
        """Return the partial matches after one more child: state -> cuts so far."""
        steps, shifts = self._matcher.step, self._matcher.shift
        if self._builder.level[child] > self._top:
            self._top = self._builder.level[child]
        after: dict[int, Cuts] = {}
        for state, cuts in partial.items():
            step, shift = steps[state], shifts[state]
            for symbol, inner in options.items():
                if symbol not in step:
                    continue
                target = step[symbol]
                if shift:
                    after[target] = self._combine(after.get(target), cuts + tuple([cut + shift for cut in inner]))
                else:
                    after[target] = cuts + inner
        return after

    def _combine(self, other: Cuts | None, cuts: Cuts) -> Cuts:
        """Return the cuts of a partial match, combined with those of another match that reached the same state."""
        if len(cuts) > _MAX_CUTS:
            cuts = self._join(cuts)
        return cuts if other is None else self._join(other, cuts)

    def _join(self, *alternatives: Cuts) -> Cuts:
        level = 1 + max([self._builder.level[cut_node(cut)] for cuts in alternatives for cut in cuts], default=0)
        self._top = max(self._top, level)
        for cuts in alternatives:
            self._builder.add_edge(JOIN, cuts)
        return (self._builder.end_node(level),)
