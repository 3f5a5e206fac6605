"""Which units may stand where.

Generation is a tree at every step: the next unit fills the first open placeholder. A unit may do so if training had its
root label below the label that the placeholder hangs from, and if the tree can still be completed within a budget of
nodes. So whatever scores a search is given, it ends, and it ends with a tree made of pairs that training had.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treepiece.errors import OptionError, UnitError
from treepiece.options import whole_number
from treepiece.tokenizer.folding import CONTINUATION
from treepiece.tokenizer.shape import HOLE, hole_parents
from treepiece.tokenizer.vocabulary import Vocabulary
from treepiece.trees.node import Node

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

Pair = tuple[str | None, str]
"""The label of a parent (None above the root) and that of a child."""


def label_pairs(skeletons: Iterable[Node]) -> set[Pair]:
    """Return every pair of parent and child label in trees.

    >>> sorted(label_pairs([Node("A", [Node("B")])]), key=str)
    [('A', 'B'), (None, 'A')]
    """
    pairs: set[Pair] = set()
    for tree in skeletons:
        pairs.add((None, tree.label))
        for node in tree.nodes():
            pairs.update((node.label, child.label) for child in node.children if isinstance(child, Node))
    return pairs


@dataclass(frozen=True)
class Partial:
    """A tree that is being written: its units, the placeholders that they fill, its open placeholders (the next last).

    Placeholders are known by the label that they hang from.
    """

    unit_ids: tuple[int, ...]
    filled: tuple[int, ...]
    open: tuple[int, ...]
    n_nodes: int
    log_p: float

    @property
    def is_complete(self) -> bool:
        """Whether no placeholder is open."""
        return not self.open


class UnitGrammar:
    """Says which units may fill a placeholder, known by the number of the label that it hangs from.

    Continuation units are never generated: they fold what is wider than training was.
    """

    def __init__(self, vocabulary: Vocabulary, pairs: Iterable[Pair], *, budget: int = 64) -> None:
        self.vocabulary = vocabulary
        self.budget = whole_number("budget", budget, 1)
        self.root = len(vocabulary.labels)
        """In place of a label, where the root of the tree stands."""
        self.holes = tuple(hole_parents(shape) for shape in vocabulary.shapes)
        self._n_nodes = np.array([sum(token >= 0 for token in shape) for shape in vocabulary.shapes], float)
        self._allowed = self._allow(pairs)
        self._least = self._least_nodes()
        self._costs = self._complete(self._least)
        for label in {self.root, *(label for holes in self._usable_holes() for label in holes)}:
            if not np.isfinite(self._least[label]):
                place = "at the root" if label == self.root else f"below {vocabulary.labels[label]!r}"
                raise UnitError(f"no tree can be completed {place}: the grammar needs the pairs of all training trees")
        if self.budget < self._least[self.root]:
            raise OptionError(f"a budget of {budget} nodes is too small: a tree needs {self._least[self.root]:.0f}")

    def _allow(self, pairs: Iterable[Pair]) -> Bools:
        labels = self.vocabulary.known_labels
        below = np.zeros((self.root + 1, self.root), bool)
        for parent, child in pairs:
            if child in labels and (parent is None or parent in labels):
                below[self.root if parent is None else labels[parent], labels[child]] = True
        roots = np.array([shape[0] for shape in self.vocabulary.shapes])
        allowed: Bools = below[:, roots]
        return allowed

    def _usable_holes(self) -> list[tuple[int, ...]]:
        continuation = self.vocabulary.label_ids[CONTINUATION]
        return [
            holes
            for holes, shape in zip(self.holes, self.vocabulary.shapes, strict=True)
            if HOLE in shape and continuation not in shape
        ]

    def _least_nodes(self) -> Floats:
        """Return with how few nodes a placeholder can be filled for good, by label: the least fixed point."""
        least = np.full(self.root + 1, np.inf)
        while True:
            better = np.where(self._allowed, self._complete(least), np.inf).min(axis=1)
            if np.array_equal(better, least):
                return least
            least = better

    def _complete(self, least: Floats) -> Floats:
        """Return with how few nodes a tree can be completed from each unit on."""
        below = [sum(float(least[label]) for label in holes) for holes in self.holes]
        total: Floats = self._n_nodes + np.array(below)
        return total

    def start(self) -> Partial:
        """Return the tree of which nothing is written."""
        return Partial((), (), (self.root,), 0, 0.0)

    def allowed(self, state: Partial) -> Bools:
        """Return which units may fill the first open placeholder, one boolean a unit."""
        reserved = state.n_nodes + sum(self._least[label] for label in state.open[:-1])
        fits: Bools = self._allowed[state.open[-1]] & (self._costs <= self.budget - reserved)
        return fits

    def extend(self, state: Partial, token: int, log_p: float) -> Partial:
        """Return the tree with one more unit in its first open placeholder."""
        return Partial(
            (*state.unit_ids, token),
            (*state.filled, state.open[-1]),
            state.open[:-1] + self.holes[token][::-1],
            state.n_nodes + int(self._n_nodes[token]),
            state.log_p + log_p,
        )
