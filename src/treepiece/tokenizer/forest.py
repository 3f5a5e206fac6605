"""The distinct subtrees of many trees, each stored once.

What the recursion computes for a node depends only on the subtree below it. A corpus repeats its subtrees (TOPv2 train
has 389,000 nodes but 8,158 distinct subtrees), so everything is done once for each of those.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from treepiece.errors import UnknownLabelError
from treepiece.tokenizer.folding import Widths, fold_node
from treepiece.trees.node import Node


class Forest:
    """Subtrees numbered so that children come before their parents; nodes wider than `widths` are folded.

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
        self._seen: dict[int, int] = {}  # id of a node object -> its number
        self._kept: list[Node] = []  # so that no id in `_seen` is given to another object

    def add(self, tree: Node) -> int:
        """Return the number of a skeleton, storing those of its subtrees that are new."""
        return self._store(*self.add_below(tree))

    def add_below(self, tree: Node) -> tuple[int, tuple[int, ...]]:
        """Return the label and the children of a skeleton, storing what is below it but not the skeleton itself."""
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
        """Return the label and the children of a node or, if it is too wide, of the continuation in its place."""
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
