"""Unit embeddings made of what the units are made of.

Most units are rare, but their labels are not. The embedding of a unit is a sum of vectors for its features (a label in
a role, a placeholder below a label, a size), which all units that have them train together, and of a vector of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import torch
from torch import Tensor, nn

from treepiece.tokenizer.shape import CLOSE, HOLE, Shape, count_children, hole_parents
from treepiece.tokenizer.vocabulary import Vocabulary

N_SIZES = 5
"""Sizes in nodes: 1, 2 to 3, 4 to 7, 8 to 15, more."""

_STD = 0.02  # as in `Embedding`; rows of length 1 keep it


class Role(IntEnum):
    """What a label stands for in a unit; a hole is a placeholder, known by the label that it hangs from."""

    ROOT = 0
    INNER = 1
    LEAF = 2
    HOLE = 3


def feature(role: Role, label: int, n_labels: int) -> int:
    """Return the number of a label in a role; those of the sizes come after all of them.

    >>> feature(Role.LEAF, 1, n_labels=10)
    21
    """
    return role * n_labels + label


def unit_features(vocabulary: Vocabulary) -> Tensor:
    """Return how often each unit has each feature, scaled so that each row has length 1.

    `[A [B ] [B ] _ ]` has A as root once, B as leaf twice, a hole below A once, and the size of 2 to 3 nodes.
    Shape: (units, features).
    """
    n_labels = len(vocabulary.labels)
    counts = torch.zeros(len(vocabulary), len(Role) * n_labels + N_SIZES)
    for unit_id, shape in enumerate(vocabulary.shapes):
        for number in _features(shape, n_labels):
            counts[unit_id, number] += 1
    return nn.functional.normalize(counts)


def _features(shape: Shape, n_labels: int) -> Iterator[int]:
    """Yield the features of a unit, as often as it has them."""
    n_children = count_children(shape)
    for place, token in enumerate(shape):
        if token not in (CLOSE, HOLE):
            role = Role.INNER if n_children[place] else Role.LEAF
            yield feature(role if place else Role.ROOT, token, n_labels)
    for label in hole_parents(shape):
        yield feature(Role.HOLE, label, n_labels)
    yield len(Role) * n_labels + min(len(n_children).bit_length(), N_SIZES) - 1


def feature_names(vocabulary: Vocabulary) -> list[str]:
    """Return a name for each feature, the same in every vocabulary that has the label."""
    names = [f"{role.name} {label}" for role in Role for label in vocabulary.labels]
    return [*names, *(f"size {size}" for size in range(N_SIZES))]


class ComposedUnits(nn.Module):
    """The part of unit embeddings that units share; a part of each unit's own is added to it.

    Units with the same features (`[A [B ] [C ] ]`, `[A [C ] [B ] ]`) differ in the part of their own only.
    """

    features: Tensor

    def __init__(self, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        # Not saved: the vocabulary is, and it gives the same again.
        self.register_buffer("features", unit_features(vocabulary), persistent=False)
        self.table = nn.Parameter(nn.init.normal_(torch.empty(self.features.shape[1], width), std=_STD))

    def forward(self) -> Tensor:
        """Return the shared part of all unit embeddings. Shape: (units, width)."""
        return self.features @ self.table
