"""The distinct subtrees of many trees, each stored once.

What the recursion computes for a node depends only on the subtree below it. A corpus repeats its subtrees (TOPv2 train
has 389,000 nodes but 8,158 distinct subtrees), so everything is done once for each of those.

A vocabulary has units for nodes of so many children and no more. A wider node is *folded* on its way in: a continuation
node takes its place, whose first child is the node with as many children as fit and whose other children are the rest.

    [A b c d e ]  with at most two children for A and three for a continuation:

    [<continuation> [A b c ] d e ]

So every tree over known labels has an encoding, whatever its shape; `unfold` undoes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from treepiece.errors import UnknownLabelError
from treepiece.tokenizer.shape import CLOSE
from treepiece.trees.node import Node


@dataclass(frozen=True)
class Widths:
    """How many children a node of each label may have, and the label that folds wider nodes (at least two children)."""

    most: Sequence[int]
    continuation: int


class Forest:
    """Subtrees numbered so that children come before their parents.

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

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, tree: Node) -> int:
        """Return the number of a tree, storing those of its subtrees that are new."""
        seen = self._seen
        if id(tree) in seen:
            return seen[id(tree)]
        new = [tree]
        for node in new:
            new += [child for child in node.children if id(child) not in seen]  # type: ignore[misc]
        self._kept.append(tree)
        for node in reversed(new):  # every child is numbered before its parent
            label = self._label_ids.get(node.label)
            if label is None:
                raise UnknownLabelError(node.label)
            seen[id(node)] = self._number(label, tuple([seen[id(child)] for child in node.children]))
        return seen[id(tree)]

    def _number(self, label: int, children: tuple[int, ...]) -> int:
        if self._widths and len(children) > self._widths.most[label]:
            return self._fold(self._widths, label, children)
        key = (label, children)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.labels)
            self.labels.append(label)
            self.children.append(children)
        return number

    def _fold(self, widths: Widths, label: int, children: tuple[int, ...]) -> int:
        fitting = widths.most[label]
        number = self._number(label, children[:fitting])
        more = widths.most[widths.continuation] - 1
        for place in range(fitting, len(children), more):
            number = self._number(widths.continuation, (number, *children[place : place + more]))
        return number


def unfold(steps: Iterable[tuple[int, int]], continuation: int) -> Iterator[tuple[int, int]]:
    """Yield the tokens of a tree without its continuation nodes; with each token goes the place of its unit.

    >>> steps = [(9, 0), (0, 0), (1, 0), (CLOSE, 0), (CLOSE, 0), (2, 1), (CLOSE, 1), (CLOSE, 0)]  # [9 [A [B ] ] [C ] ]
    >>> [token for token, _ in unfold(steps, continuation=9)]
    [0, 1, -1, 2, -1, -1]
    """
    is_inner: list[bool] = []  # of each open node: does it go on until its continuation closes?
    first = False
    for token, place in steps:
        if token == CLOSE:
            if not is_inner.pop():
                yield token, place
        else:
            is_inner.append(first)
            first = token == continuation
            if not first:
                yield token, place
