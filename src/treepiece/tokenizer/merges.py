"""Vocabulary generation (Section 2.2.1 of the paper): byte-pair merges on trees.

Every tree starts as one piece a node. The most frequent adjacent pair of pieces is joined wherever it occurs, becomes a
unit, and so on. Two rules make the result a function of the corpus alone:

- A pair is known by the shape that it merges into. Of equally frequent ones the smallest shape goes first, then the one
  whose labels come first in the alphabet.
- Where occurrences overlap (the chain A-A-A has two of `[A [A ] ]`), the first in pre-order is joined and the others
  are no longer that pair. The count of a pair is the number of its occurrences before joining, overlapping or not.

A unit has at most 64 nodes, so that a corpus of very deep or very wide trees costs time in proportion to its size.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from treepiece.tokenizer.corpus import Corpus
from treepiece.tokenizer.shape import CLOSE, Shape, splice

_LARGEST_UNIT = 64


@dataclass(frozen=True)
class BaseVocabulary:
    """Units without placeholders and F0, their counts when they were made: labels first, then merges in order."""

    shapes: tuple[Shape, ...]
    counts: tuple[int, ...]
    n_labels: int


def learn_merges(corpus: Corpus, n_merges: int, on_merge: Callable[[int], None] | None = None) -> BaseVocabulary:
    """Return the labels and up to `n_merges` merged units; fewer when no pair is left.

    `[A [B ] [C ] ]` twice and `[A [B ] ]` once: the pair A-B occurs three times and is joined first, then the C.

    >>> from treepiece.trees.brackets import parse_brackets
    >>> tree = lambda text: parse_brackets(text, any_label=True)
    >>> vocabulary = learn_merges(Corpus.collect([(tree("[A [B ] [C ] ]"), 2), tree("[A [B ] ]")]), 2)
    >>> vocabulary.shapes[3:]
    ((0, 1, -1, -1), (0, 1, -1, 2, -1, -1))
    >>> vocabulary.counts
    (3, 3, 2, 3, 2)
    """
    pieces = Pieces(corpus)
    counts: dict[int, int] = pieces.label_counts()
    wanted = len(corpus.labels) + n_merges
    queue = [pieces.rank(pair) for pair in pieces.take_changed()]
    heapq.heapify(queue)
    while queue and len(counts) < wanted:
        negative_count, _, _, pair = heapq.heappop(queue)
        if -negative_count != pieces.count[pair]:
            continue  # out of date: the pair was ranked again when its count changed
        pieces.join_all(pair)
        # A shape can come up again after its merge, when its parts have come together in another order.
        counts[pair] = counts.get(pair, 0) - negative_count
        for changed in pieces.take_changed():
            heapq.heappush(queue, pieces.rank(changed))
        if on_merge:
            on_merge(len(counts) - len(corpus.labels))
    shapes = tuple(pieces.shapes[shape] for shape in counts)
    return BaseVocabulary(shapes, tuple(counts.values()), len(corpus.labels))


class Pieces:
    """All trees of a corpus cut into pieces, with the count and the places of every adjacent pair kept up to date.

    Nodes are numbered through all trees in pre-order. An edge is known by its lower node; it either lies inside a piece
    (`joined`) or between two pieces, and then has a pair: the shape that joining it would give.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.shapes: list[Shape] = []
        self._ids: dict[Shape, int] = {}
        self._joins: dict[tuple[int, int, int], int] = {}
        self.count: list[int] = []  # of each shape, as a pair
        self._places: list[set[int]] = []
        self._changed: set[int] = set()
        self._weight: list[int] = []
        self._parent: list[int] = []
        self._children: list[list[int]] = []
        self._shape: list[int] = []  # of the piece that is rooted at each node
        self._n_labels = len(corpus.labels)
        for label in range(self._n_labels):
            self._intern((label, CLOSE))
        self._flatten(corpus)
        n_nodes = len(self._parent)
        self._root = list(range(n_nodes))  # of the piece that each node is in
        self._joined = [False] * n_nodes
        self._slot = [1] * n_nodes
        self._pair = [-1] * n_nodes
        for node, parent in enumerate(self._parent):
            if parent >= 0:
                self._set_pair(node)

    def _flatten(self, corpus: Corpus) -> None:
        label_ids = {label: number for number, label in enumerate(corpus.labels)}
        for tree, weight in zip(corpus.trees, corpus.counts, strict=True):
            stack = [(tree, -1)]
            while stack:
                node, parent = stack.pop()
                place = len(self._parent)
                self._parent.append(parent)
                self._weight.append(weight)
                self._shape.append(label_ids[node.label])
                self._children.append([])
                if parent >= 0:
                    self._children[parent].append(place)
                stack.extend((child, place) for child in reversed(node.children))  # type: ignore[misc]

    def label_counts(self) -> dict[int, int]:
        """Return how often each label occurs, by shape."""
        counts = dict.fromkeys(range(self._n_labels), 0)
        for shape, weight in zip(self._shape, self._weight, strict=True):
            counts[shape] += weight
        return counts

    def owners(self) -> list[int]:
        """Return the piece that each node is in, known by the node at its root; nodes are counted in pre-order."""
        return list(self._root)

    def rank(self, pair: int) -> tuple[int, int, Shape, int]:
        """Return what orders the pairs: count, size, labels."""
        shape = self.shapes[pair]
        return -self.count[pair], len(shape), shape, pair

    def take_changed(self) -> Iterator[int]:
        """Yield the pairs that may be joined and whose count has changed since the last call."""
        changed, self._changed = self._changed, set()
        return (pair for pair in changed if self.count[pair] and len(self.shapes[pair]) <= 2 * _LARGEST_UNIT)

    def join_all(self, pair: int) -> None:
        """Join every occurrence of a pair, in pre-order."""
        for node in sorted(self._places[pair]):
            if self._pair[node] == pair:  # else an occurrence that overlapped was joined before
                self._join(node)

    def _join(self, node: int) -> None:
        root = self._root[self._parent[node]]
        shape = self._pair[node]
        self._clear_pair(node)
        self._joined[node] = True
        self._shape[root] = shape
        for slot, lower in self._edges_down(root):
            self._clear_pair(lower)
            self._slot[lower] = slot
            self._set_pair(lower)
        if self._parent[root] >= 0:
            self._clear_pair(root)
            self._set_pair(root)

    def _edges_down(self, root: int) -> Iterator[tuple[int, int]]:
        """Yield the edges that leave the piece at `root` downwards, each with its slot; claim the piece's nodes."""
        position = 1
        path = [iter(self._children[root])]
        while path:
            for child in path[-1]:
                if self._joined[child]:
                    self._root[child] = root
                    position += 1
                    path.append(iter(self._children[child]))
                    break
                yield position, child
            else:
                path.pop()
                position += 1

    def _set_pair(self, node: int) -> None:
        upper = self._shape[self._root[self._parent[node]]]
        key = (upper, self._slot[node], self._shape[node])
        pair = self._joins.get(key)
        if pair is None:
            pair = self._joins[key] = self._intern(splice(self.shapes[upper], key[1], self.shapes[key[2]]))
        self._pair[node] = pair
        self.count[pair] += self._weight[node]
        self._places[pair].add(node)
        self._changed.add(pair)

    def _clear_pair(self, node: int) -> None:
        pair = self._pair[node]
        self._pair[node] = -1
        self.count[pair] -= self._weight[node]
        self._places[pair].discard(node)
        self._changed.add(pair)

    def _intern(self, shape: Shape) -> int:
        number = self._ids.setdefault(shape, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(shape)
            self.count.append(0)
            self._places.append(set())
        return number
