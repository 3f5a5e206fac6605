"""Unit embeddings made of what the units are made of.

Most units are rare, but their parts are not. The embedding of a unit is a sum of vectors for its parts (a label in a
role, a label below or beside another, a size), which all units that have them train together, and of a vector of its
own. As the embeddings are the classifier's weights too, the score of a unit is a sum over its parts:

    embedding(unit) = own(unit) + sum over the parts of the unit of vector(part)
    state . embedding(unit) = state . own(unit) + sum over the parts of state . vector(part)

So a decoder that has learned what speaks for a slot knows it for every unit with that slot, and the more slots a unit
has the more can speak for it. None of this costs anything once a model is trained: the sums are made once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from treepiece.tokenizer.shape import CLOSE, HOLE, Shape, count_children
from treepiece.tokenizer.vocabulary import Vocabulary

N_SIZES = 5
"""Sizes in nodes: 1, 2 to 3, 4 to 7, 8 to 15, more."""

_STD = 0.02  # as in `Embedding`
_EDGE = "|"  # before the first child
_HOLE = "_"


def unit_parts(shape: Shape, labels: Sequence[str]) -> Iterator[str]:
    """Yield the names of a unit's parts, as often as it has them.

    Each node and each placeholder is a part by its role, by the label above it, and by its neighbour on the left.

    >>> list(unit_parts((0, 1, CLOSE, HOLE, CLOSE), "AB"))  # [A [B ] _ ]
    ['root A', 'leaf B', 'A > B', '| ~ B', 'A > _', 'B ~ _', 'size 1']
    """
    n_children = count_children(shape)
    path: list[str] = []
    left: list[str] = []  # the last child so far of each node of the path
    for place, token in enumerate(shape):
        if token == CLOSE:
            path.pop()
            left.pop()
            continue
        name = _HOLE if token == HOLE else labels[token]
        if token != HOLE:
            yield f"{_role(place, n_children[place])} {name}"
        if path:
            yield f"{path[-1]} > {name}"
            yield f"{left[-1]} ~ {name}"
            left[-1] = name
        if token != HOLE:
            path.append(name)
            left.append(_EDGE)
    yield f"size {min(len(n_children).bit_length(), N_SIZES) - 1}"


def _role(place: int, n_children: int) -> str:
    if place == 0:
        return "root"
    return "inner" if n_children else "leaf"


def part_names(vocabulary: Vocabulary) -> list[str]:
    """Return the name of each part that units have, in the order of their first units."""
    return list(dict.fromkeys(name for shape in vocabulary.shapes for name in unit_parts(shape, vocabulary.labels)))


class ComposedUnits(nn.Module):
    """The part of unit embeddings that units share; a part of each unit's own is added to it."""

    parts: Tensor
    first: Tensor

    def __init__(self, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        names = part_names(vocabulary)
        numbers = {name: number for number, name in enumerate(names)}
        units = [[numbers[name] for name in unit_parts(shape, vocabulary.labels)] for shape in vocabulary.shapes]
        first = torch.tensor([0, *map(len, units)]).cumsum(0)[:-1]
        # Not saved: the vocabulary is, and it gives the same again.
        self.register_buffer("parts", torch.tensor([part for unit in units for part in unit]), persistent=False)
        self.register_buffer("first", first, persistent=False)  # where the parts of each unit begin
        self.table = nn.Parameter(nn.init.normal_(torch.empty(len(names), width), std=_STD))

    def forward(self) -> Tensor:
        """Return the shared part of all unit embeddings. Shape: (units, width)."""
        return nn.functional.embedding_bag(self.parts, self.table, self.first, mode="sum")
