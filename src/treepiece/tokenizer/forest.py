"""The distinct subtrees of many trees, each stored once.

What the recursion computes for a node depends only on the subtree below it. A corpus repeats its subtrees (TOPv2 train
has 389,000 nodes but 8,158 distinct subtrees), so everything is done once for each of those.
"""

from __future__ import annotations

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
        self._widths = widths
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._seen: dict[int, int] = {}  # id of a node object -> its number
        self._kept: list[Node] = []  # so that no id in `_seen` is given to another object

    def add(self, tree: Node) -> int:
        """Return the number of a skeleton, storing those of its subtrees that are new."""
        seen, widths = self._seen, self._widths
        if id(tree) in seen:
            return seen[id(tree)]
        new = [tree]
        for node in new:
            new += [child for child in node.children if id(child) not in seen]  # type: ignore[misc]  # no words here
        self._kept.append(tree)
        for node in reversed(new):  # every child is numbered before its parent
            label = self._label_ids.get(node.label)
            if label is None:
                raise UnknownLabelError(node.label)
            children = tuple([seen[id(child)] for child in node.children])
            if widths and len(children) > widths.most[label]:
                most = (widths.most[label], widths.most[widths.continuation])
                seen[id(node)] = fold_node(self._number, label, widths.continuation, children, most)
            else:
                seen[id(node)] = self._number(label, children)
        return seen[id(tree)]

    def _number(self, label: int, children: tuple[int, ...]) -> int:
        key = (label, children)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.labels)
            self.labels.append(label)
            self.children.append(children)
        return number
