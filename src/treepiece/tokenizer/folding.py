"""Folding: the fallback for nodes that have more children than any unit provides for.

A wide node is replaced by a *continuation* node. Its first child is the node itself with as many children as fit; its
other children are the remaining ones. If A may have two children and a continuation three:

    [A b c d e ]  ->  [<continuation> [A b c ] d e ]

Decoding unfolds the tree again. So every tree over known labels has an encoding, as byte fallback guarantees for text.
Training folds nodes of more than 64 children as well, since no vocabulary needs a unit for each possible width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from treepiece.tokenizer.shape import CLOSE, Shape, count_children
from treepiece.trees.node import Node

CONTINUATION = "<continuation>"
"""The reserved label of continuation nodes."""

_MAX_CHILDREN = 64

_Label = TypeVar("_Label")
_Tree = TypeVar("_Tree")


@dataclass(frozen=True)
class Widths:
    """The most children that units provide for, by label, and the label of continuation nodes (always two or more)."""

    most: Sequence[int]
    continuation: int


def folds_properly(shape: Shape, continuation: int) -> bool:
    """Return whether all continuation nodes of a unit have two children or more, as folding guarantees."""
    return all(shape[position] != continuation or n >= 2 for position, n in count_children(shape).items())


def fold(tree: Node) -> Node:
    """Return a tree whose nodes have at most 64 children; the same object if nothing is to be folded."""
    if all(len(node.children) <= _MAX_CHILDREN for node in tree.nodes()):
        return tree
    folded: dict[int, Node] = {}
    for node in reversed(list(tree.nodes())):  # every child before its parent
        children = tuple(folded[id(child)] for child in node.children)
        folded[id(node)] = fold_node(Node, node.label, CONTINUATION, children, (_MAX_CHILDREN, _MAX_CHILDREN))
    return folded[id(tree)]


def fold_node(
    make: Callable[[_Label, tuple[_Tree, ...]], _Tree],
    label: _Label,
    continuation: _Label,
    children: tuple[_Tree, ...],
    most: tuple[int, int],
) -> _Tree:
    """Return a node, folded if it has too many children; `most` is the limit of the node and of continuations.

    >>> children = tuple(map(Node, "bcdef"))
    >>> fold_node(Node, "A", "<>", children, (2, 3))
    Node('[<> [<> [A [b ] [c ] ] [d ] [e ] ] [f ] ]')
    """
    fitting, following = most[0], most[1] - 1
    node = make(label, children[:fitting])
    for start in range(fitting, len(children), following):
        node = make(continuation, (node, *children[start : start + following]))
    return node


def unfold(steps: Iterable[tuple[int, int]], continuation: int) -> Iterator[tuple[int, int]]:
    """Yield the tokens of a tree without its continuation nodes; each token comes with the index of its unit.

    >>> steps = [(9, 0), (0, 0), (1, 0), (CLOSE, 0), (CLOSE, 0), (2, 1), (CLOSE, 1), (CLOSE, 0)]  # [9 [A [B ] ] [C ] ]
    >>> [token for token, _ in unfold(steps, continuation=9)]
    [0, 1, -1, 2, -1, -1]
    """
    is_inner: list[bool] = []  # of each open node: whether it is the first child of a continuation, and closes with it
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
