"""Nodes that are wider than the vocabulary, folded so that units exist for them.

A vocabulary has units for nodes of so many children and no more. In the place of a wider node stands a continuation
node, whose first child is the node itself with the children that fit, and whose other children are the rest:

    [A b c d e ]   with room for two children below A and for three below a continuation:

    [<continuation> [A b c ] d e ]

So every tree over known labels has an encoding, whatever its shape. In training, nodes of more than 64 children are
folded too: units for every width up to 100,000 would help nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from treepiece.tokenizer.shape import CLOSE, Shape, count_children
from treepiece.trees.node import Node

CONTINUATION = "<continuation>"
"""The reserved label of continuation nodes."""

_WIDEST = 64

_Label = TypeVar("_Label")
_Tree = TypeVar("_Tree")


@dataclass(frozen=True)
class Widths:
    """How many children a node of each label may have, and the label of continuation nodes (at least two children)."""

    most: Sequence[int]
    continuation: int


def folds_properly(shape: Shape, continuation: int) -> bool:
    """Return whether the continuation nodes of a unit, if any, have two children or more, as folding makes them."""
    return all(shape[place] != continuation or n >= 2 for place, n in count_children(shape).items())


def fold(tree: Node) -> Node:
    """Return a tree whose nodes have 64 children at the most; the same object where they had before."""
    if all(len(node.children) <= _WIDEST for node in tree.nodes()):
        return tree
    folded: dict[int, Node] = {}
    for node in reversed(list(tree.nodes())):  # every child before its parent
        children = tuple(folded[id(child)] for child in node.children)
        folded[id(node)] = fold_node(Node, node.label, CONTINUATION, children, (_WIDEST, _WIDEST))
    return folded[id(tree)]


def fold_node(
    make: Callable[[_Label, tuple[_Tree, ...]], _Tree],
    label: _Label,
    continuation: _Label,
    children: tuple[_Tree, ...],
    most: tuple[int, int],
) -> _Tree:
    """Return a node made by `make`, folded if it has too many children; `most` is for the node and for continuations.

    >>> children = tuple(map(Node, "bcdef"))
    >>> fold_node(Node, "A", "<>", children, (2, 3))
    Node('[<> [<> [A [b ] [c ] ] [d ] [e ] ] [f ] ]')
    """
    fitting, following = most[0], most[1] - 1
    node = make(label, children[:fitting])
    for place in range(fitting, len(children), following):
        node = make(continuation, (node, *children[place : place + following]))
    return node


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
