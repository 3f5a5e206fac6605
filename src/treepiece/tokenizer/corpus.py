"""Deduplicated trees: a `Corpus` counts distinct trees, a `Forest` stores distinct subtrees.

All values that the tokenizer computes for a node depend on the subtree below it only. Corpora repeat their subtrees
(TOPv2 train has 389,000 nodes but 8,158 distinct subtrees), so each distinct subtree is processed once.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import SupportsIndex

from treepiece.checks import whole_number
from treepiece.errors import OptionError, TreeParseError, UnknownLabelError
from treepiece.tokenizer.folding import CONTINUATION, Widths, fold, fold_node
from treepiece.trees.node import Node

Trees = Iterable[Node | tuple[Node, SupportsIndex]] | Mapping[Node, SupportsIndex]
"""Trees or pairs (tree, count), or a mapping from trees to counts such as a `Counter`."""

_MAX_COUNT = 10**12


@dataclass(frozen=True)
class Corpus:
    """Distinct skeletons, their counts, and their labels in alphabetical order.

    Very wide nodes are folded (see `folding`); if there are any, the continuation label comes last.

    >>> corpus = Corpus.collect([Node("B"), Node("A", [Node("B")]), Node("B")])
    >>> corpus.counts, corpus.labels
    ((2, 1), ('A', 'B'))
    """

    trees: tuple[Node, ...]
    counts: tuple[int, ...]
    labels: tuple[str, ...]

    @classmethod
    def collect(cls, trees: Trees) -> Corpus:
        """Return the corpus of the given trees."""
        counter: Counter[Node] = Counter()
        for item in trees.items() if isinstance(trees, Mapping) else trees:
            tree, count = item if isinstance(item, tuple) else (item, 1)
            counter[tree] += whole_number("the count of a tree", count, 1, _MAX_COUNT)
        if not counter:
            raise OptionError("there are no trees to train on: pass at least one")
        labels: set[str] = set()
        for tree in counter:
            check_skeleton(tree)
            labels.update(node.label for node in tree.nodes())
        if CONTINUATION in labels:
            raise TreeParseError(f"the label {CONTINUATION!r} is reserved: rename it")
        folded = tuple(fold(tree) for tree in counter)
        is_folded = any(tree is not before for tree, before in zip(folded, counter, strict=True))
        return cls(folded, tuple(counter.values()), (*sorted(labels), *[CONTINUATION] * is_folded))


def check_skeleton(tree: Node) -> None:
    """Raise unless `tree` is a tree without words."""
    if not isinstance(tree, Node):
        raise TreeParseError(f"expected a Node, got {type(tree).__name__}: for a frame, pass frame.skeleton")
    if not tree.is_skeleton:
        word = next(child for node in tree.nodes() for child in node.children if isinstance(child, str))
        raise TreeParseError(
            f"a tree to tokenize must not contain words, found {word!r}: pass Frame.from_tree(tree).skeleton"
        )


class Forest:
    """Distinct subtrees, numbered so that children precede their parents; nodes wider than `widths` are folded.

    >>> forest = Forest({"A": 0, "B": 1})
    >>> forest.add(Node("A", [Node("B"), Node("B")]))
    1
    >>> forest.labels, forest.children
    ([1, 0], [(), (0, 0)])
    """

    def __init__(self, label_ids: Mapping[str, int], widths: Widths | None = None) -> None:
        self.labels: list[int] = []
        self.children: list[tuple[int, ...]] = []
        self._label_ids = label_ids
        self._most = widths.most if widths else [sys.maxsize] * len(label_ids)
        self._continuation = widths.continuation if widths else -1
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._seen: dict[int, int] = {}  # id() of a node -> its number
        self._kept: list[Node] = []  # keeps the nodes of `_seen` alive, so that no id() is reused

    def add(self, tree: Node) -> int:
        """Add a tree and its subtrees; return its number."""
        return self._store(*self.add_below(tree))

    def add_below(self, tree: Node) -> tuple[int, tuple[int, ...]]:
        """Add the subtrees below the root of a tree; return the label and the children of the root."""
        seen = self._seen
        new: list[Node] = [child for child in tree.children if id(child) not in seen]  # type: ignore[misc]  # no words
        if new:
            self._kept.append(tree)
            for node in new:
                new += [child for child in node.children if id(child) not in seen]  # type: ignore[misc]
            for node in reversed(new):  # every child is numbered before its parent
                seen[id(node)] = self._store(*self._fold(node))
        return self._fold(tree)

    def _fold(self, node: Node) -> tuple[int, tuple[int, ...]]:
        """Return the label and the children of a node or, if it is too wide, of the continuation that replaces it."""
        label = self._label_ids.get(node.label)
        if label is None:
            raise UnknownLabelError(node.label)
        seen = self._seen
        children = tuple([seen[id(child)] for child in node.children])
        if len(children) <= self._most[label]:
            return label, children
        most = (self._most[label], self._most[self._continuation])
        number = fold_node(self._store, label, self._continuation, children, most)
        return self.labels[number], self.children[number]

    def _store(self, label: int, children: tuple[int, ...]) -> int:
        number = self._numbers.setdefault((label, children), len(self.labels))
        if number == len(self.labels):
            self.labels.append(label)
            self.children.append(children)
        return number
