"""Vocabulary generation (Section 2.2.1 of the paper): byte-pair encoding on trees.

Initially each node is a piece of its own. Each step merges the most frequent pair of adjacent pieces wherever it occurs
and adds it to the vocabulary. Two rules make the result a function of the corpus alone:

- A pair is identified by the shape that it merges into. Among equally frequent pairs the smallest shape comes first,
  then the one whose labels are first in alphabetical order.
- Where occurrences overlap (the chain A-A-A contains `[A [A ] ]` twice), the first in pre-order is merged. The count of
  a pair is the number of its occurrences before merging, overlapping ones included.

Pair counts are updated incrementally, and a unit has at most 64 nodes, so training time is proportional to the size of
the corpus even if its trees are very deep or wide.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from treepiece.tokenizer.corpus import Corpus
from treepiece.tokenizer.shape import CLOSE, Shape, splice

_MAX_UNIT_NODES = 64


@dataclass(frozen=True)
class BaseVocabulary:
    """Units without placeholders and their counts F0 when they were added: labels first, then merges in order."""

    shapes: tuple[Shape, ...]
    counts: tuple[int, ...]
    n_labels: int


def learn_merges(corpus: Corpus, n_merges: int, on_merge: Callable[[int], None] | None = None) -> BaseVocabulary:
    """Return the labels and up to `n_merges` merged units, fewer if no pair is left.

    With `[A [B ] [C ] ]` twice and `[A [B ] ]` once, the pair A-B occurs three times and is merged first, then the C.

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
            continue  # outdated: the pair was pushed again when its count changed
        pieces.join_all(pair)
        # A shape can recur after its merge, when its parts are merged in another order.
        counts[pair] = counts.get(pair, 0) - negative_count
        for changed in pieces.take_changed():
            heapq.heappush(queue, pieces.rank(changed))
        if on_merge:
            on_merge(len(counts) - len(corpus.labels))
    shapes = tuple(pieces.shapes[shape] for shape in counts)
    return BaseVocabulary(shapes, tuple(counts.values()), len(corpus.labels))


class Pieces:
    """The trees of a corpus as pieces, with the count and the occurrences of every pair of adjacent pieces.

    Nodes are numbered in pre-order through all trees. An edge is identified by its lower node. It is either inside a
    piece or between two pieces; then its pair is the shape that merging the two would give.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.shapes: list[Shape] = []
        self._ids: dict[Shape, int] = {}
        self._joins: dict[tuple[int, int, int], int] = {}
        self.count: list[int] = []  # of each shape, as a pair
        self._occurrences: list[set[int]] = []  # of each shape, as a pair: edges
        self._changed: set[int] = set()
        self._weight: list[int] = []
        self._parent: list[int] = []
        self._shape: list[int] = []  # of the piece whose root is this node
        self._n_labels = len(corpus.labels)
        for label in range(self._n_labels):
            self._intern((label, CLOSE))
        self._flatten(corpus)
        n_nodes = len(self._parent)
        self.root = list(range(n_nodes))  # the root of the piece that contains this node
        self._position = [1] * n_nodes  # of an edge in the shape of the upper piece
        self._pair = [-1] * n_nodes
        self._children: list[list[int]] = [[] for _ in self._parent]
        for node, parent in enumerate(self._parent):
            if parent >= 0:
                self._children[parent].append(node)
                self._set_pair(node)

    def _flatten(self, corpus: Corpus) -> None:
        label_ids = {label: number for number, label in enumerate(corpus.labels)}
        for tree, weight in zip(corpus.trees, corpus.counts, strict=True):
            stack = [(tree, -1)]
            while stack:
                node, parent = stack.pop()
                number = len(self._parent)
                self._parent.append(parent)
                self._weight.append(weight)
                self._shape.append(label_ids[node.label])
                stack.extend((child, number) for child in reversed(node.children))  # type: ignore[misc]

    def label_counts(self) -> dict[int, int]:
        """Return the count of each label, by its shape."""
        counts = dict.fromkeys(range(self._n_labels), 0)
        for shape, weight in zip(self._shape, self._weight, strict=True):
            counts[shape] += weight
        return counts

    def rank(self, pair: int) -> tuple[int, int, Shape, int]:
        """Return the sort key of a pair: highest count, then smallest shape, then labels."""
        shape = self.shapes[pair]
        return -self.count[pair], len(shape), shape, pair

    def take_changed(self) -> Iterator[int]:
        """Yield the pairs that may be merged and whose count has changed since the last call."""
        changed, self._changed = self._changed, set()
        return (pair for pair in changed if self.count[pair] and len(self.shapes[pair]) <= 2 * _MAX_UNIT_NODES)

    def join_all(self, pair: int) -> None:
        """Merge every occurrence of a pair, in pre-order."""
        for node in sorted(self._occurrences[pair]):
            if self._pair[node] == pair:  # otherwise an overlapping occurrence was merged before
                self._join(node)

    def _join(self, node: int) -> None:
        root = self.root[self._parent[node]]
        shape = self._pair[node]
        self._clear_pair(node)
        self.root[node] = root
        self._shape[root] = shape
        for position, lower in self._edges_down(root):
            self._clear_pair(lower)
            self._position[lower] = position
            self._set_pair(lower)
        if self._parent[root] >= 0:
            self._clear_pair(root)
            self._set_pair(root)

    def _edges_down(self, root: int) -> Iterator[tuple[int, int]]:
        """Yield the edges below the piece at `root`, each with its position; set the root of the nodes of the piece."""
        position = 1
        path = [iter(self._children[root])]
        while path:
            for child in path[-1]:
                if self.root[child] != child:
                    self.root[child] = root
                    position += 1
                    path.append(iter(self._children[child]))
                    break
                yield position, child
            else:
                path.pop()
                position += 1

    def _set_pair(self, node: int) -> None:
        upper = self._shape[self.root[self._parent[node]]]
        key = (upper, self._position[node], self._shape[node])
        pair = self._joins.get(key)
        if pair is None:
            pair = self._joins[key] = self._intern(splice(self.shapes[upper], key[1], self.shapes[key[2]]))
        self._pair[node] = pair
        self.count[pair] += self._weight[node]
        self._occurrences[pair].add(node)
        self._changed.add(pair)

    def _clear_pair(self, node: int) -> None:
        pair = self._pair[node]
        self._pair[node] = -1
        self.count[pair] -= self._weight[node]
        self._occurrences[pair].discard(node)
        self._changed.add(pair)

    def _intern(self, shape: Shape) -> int:
        number = self._ids.setdefault(shape, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(shape)
            self.count.append(0)
            self._occurrences.append(set())
        return number
