"""Batches cut into parts of rows that are about as long, for the decoders.

The rows of a batch have utterances of about the same length, but not trees: a batch of 64 rows of TOPv2 has 9.7 tokens
a frame, and 21.5 in its longest. A decoder works on as many places as the longest row has. So it gets the rows in two
parts, the short ones together and the long ones together, and works on far fewer places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from treepiece.models.utterances import Memory
from treepiece.training.losses import IGNORED

N_PARTS = 2
"""More parts have fewer places, but each of them takes time of its own."""


def parts_by_size(sizes: Sequence[int], n_parts: int) -> list[list[int]]:
    """Return the places of rows in parts of as many rows, the smallest first.

    >>> parts_by_size([9, 2, 8, 3], n_parts=2)
    [[1, 3], [2, 0]]
    """
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    step = math.ceil(len(order) / n_parts)
    return [order[start : start + step] for start in range(0, len(order), step)]


def in_parts(
    sizes: Sequence[int], memory: Memory, work: Callable[[Sequence[int], Memory], tuple[Tensor, ...]]
) -> tuple[Tensor, ...]:
    """Return what `work` makes of the rows of a batch, part by part, at the places that have a target.

    `work` takes places of rows and the states of their utterances. It returns targets and then what belongs to the same
    places, such as logits. Shape: of targets (rows, n), of the others (rows, n, ...); of what is returned (places with
    a target, ...).
    """
    found: list[list[Tensor]] = []
    for rows in parts_by_size(sizes, N_PARTS):
        tensors = work(rows, memory.select(rows))
        has_target = tensors[0] != IGNORED
        found.append([tensor[has_target] for tensor in tensors])
    return tuple(torch.cat(parts) for parts in zip(*found, strict=True))
