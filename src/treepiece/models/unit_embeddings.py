"""Two extensions of the unit decoder: compositional embeddings, and logits from the labels of a unit.

Most units are rare, but their parts are not. A compositional embedding is the sum of the unit's own vector and of
vectors for its parts (a label in a role, a label below or next to another, a size), which units share. The embeddings
are also the weights of the classifier, so the score of a unit is a sum over its parts, too:

    embedding(unit) = own(unit) + sum over the parts of the unit of vector(part)
    state . embedding(unit) = state . own(unit) + sum over the parts of state . vector(part)

What the decoder learns about a slot holds for every unit with that slot. Once a model is trained, the sums are
computed once and cost nothing.

The unit decoder reads the utterance with one query, and most units are a whole skeleton: one vector has to represent
all slots at once. Label logits add a second source: each subword scores each label, and the maximum counts:

    logit(label | utterance) = max over the subwords of weight(label) . state(subword) + bias(label)
    logit(unit)              = the decoder's + sum over the labels in the unit of logit(label)

"wake me at 8" has a subword that is evidence for SL:DATE_TIME, and none for SL:ALARM_NAME.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from treepiece.tokenizer.shape import CLOSE, PLACEHOLDER, Shape, count_children
from treepiece.tokenizer.vocabulary import Vocabulary

N_SIZES = 5
"""Sizes in nodes: 1, 2 to 3, 4 to 7, 8 to 15, more."""

_STD = 0.02  # as in `Embedding`
_EDGE = "|"  # before the first child
_PLACEHOLDER = "_"


def unit_parts(shape: Shape, labels: Sequence[str]) -> Iterator[str]:
    """Yield the names of a unit's parts, repeated if the unit has a part several times.

    Each node and each placeholder is a part by its role, by the label above it, and by its neighbour on the left.

    >>> list(unit_parts((0, 1, CLOSE, PLACEHOLDER, CLOSE), "AB"))  # [A [B ] _ ]
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
        name = _PLACEHOLDER if token == PLACEHOLDER else labels[token]
        if token != PLACEHOLDER:
            role = "root" if place == 0 else "inner" if n_children[place] else "leaf"
            yield f"{role} {name}"
        if path:
            yield f"{path[-1]} > {name}"
            yield f"{left[-1]} ~ {name}"
            left[-1] = name
        if token != PLACEHOLDER:
            path.append(name)
            left.append(_EDGE)
    yield f"size {min(len(n_children).bit_length(), N_SIZES) - 1}"


def part_names(vocabulary: Vocabulary) -> list[str]:
    """Return the name of each part that units have, in the order of their first units."""
    return list(dict.fromkeys(name for shape in vocabulary.shapes for name in unit_parts(shape, vocabulary.labels)))


class CompositionalEmbedding(nn.Module):
    """The part of unit embeddings that units share; each unit adds a vector of its own."""

    parts: Tensor
    first: Tensor

    def __init__(self, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        names = part_names(vocabulary)
        numbers = {name: number for number, name in enumerate(names)}
        units = [[numbers[name] for name in unit_parts(shape, vocabulary.labels)] for shape in vocabulary.shapes]
        first = torch.tensor([0, *map(len, units)]).cumsum(0)[:-1]
        # Not saved: it follows from the vocabulary, which is saved.
        self.register_buffer("parts", torch.tensor([part for unit in units for part in unit]), persistent=False)
        self.register_buffer("first", first, persistent=False)  # the index of each unit's first part
        self.table = nn.Parameter(nn.init.normal_(torch.empty(len(names), width), std=_STD))

    def forward(self) -> Tensor:
        """Return the shared part of all unit embeddings. Shape: (units, width)."""
        return nn.functional.embedding_bag(self.parts, self.table, self.first, mode="sum")


def label_counts(vocabulary: Vocabulary) -> Tensor:
    """Return the count of each label in each unit. Shape: (units, labels)."""
    counts = torch.zeros(len(vocabulary), len(vocabulary.labels))
    for unit_id, shape in enumerate(vocabulary.shapes):
        for token in shape:
            if token >= 0:  # neither a bracket nor a placeholder
                counts[unit_id, token] += 1
    return counts


class LabelLogits(nn.Module):
    """Scores units by the labels that they have."""

    counts: Tensor

    def __init__(self, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        # Not saved: it follows from the vocabulary, which is saved.
        self.register_buffer("counts", label_counts(vocabulary), persistent=False)
        self.project = nn.Linear(width, len(vocabulary.labels))
        nn.init.normal_(self.project.weight, std=_STD)
        nn.init.zeros_(self.project.bias)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the summand for the logits of the units; without a mask, all states are used.

        Shape: states (batch, n, width), mask (batch, n), result (batch, units).
        """
        logits: Tensor = self.project(states)
        if mask is not None:
            logits = logits.masked_fill(~mask.unsqueeze(2), torch.finfo(logits.dtype).min)
        return nn.functional.linear(logits.amax(1), self.counts)
