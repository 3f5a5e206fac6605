"""A skeleton as the span decoder reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from treepiece.trees.frame import walk_leaves
from treepiece.trees.node import Kind, Node


class SkeletonTokens(NamedTuple):
    """Label numbers as nodes open, `closing` as they close; and the places of the leaves among them."""

    tokens: tuple[int, ...]
    leaves: tuple[int, ...]


def read_skeleton(skeleton: Node, label_ids: Mapping[str, int], closing: int) -> SkeletonTokens:
    """Return the tokens of a skeleton and where its utterance leaves open.

    >>> read_skeleton(Node("IN:A", [Node("SL:B"), Node("SL:B")]), {"IN:A": 0, "SL:B": 1}, closing=2)
    SkeletonTokens(tokens=(0, 1, 2, 1, 2, 2), leaves=(1, 3))
    """
    tokens: list[int] = []
    leaves: list[int] = []
    for kind, label, is_leaf in walk_leaves(skeleton):
        if is_leaf:
            leaves.append(len(tokens) - 1)
        tokens.append(label_ids[label] if kind is Kind.OPEN else closing)
    return SkeletonTokens(tuple(tokens), tuple(leaves))
