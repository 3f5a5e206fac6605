"""Utterances as tensors, and what an encoder makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treepiece.decoding.search import Logits
from treepiece.models.encoder import Encoder
from treepiece.text import Subwords


@dataclass(frozen=True)
class Memory:
    """The states of a batch of utterances.

    Shape: states (batch, n, width); mask (batch, n), True where there is a subword or a special token; pointable
    (batch, n), True where there is a subword. Subword i has state i + 1, because a special token comes first.
    """

    states: Tensor
    mask: Tensor
    pointable: Tensor

    def select(self, items: Sequence[int]) -> Memory:
        """Return the states of some utterances, which may come more than once."""
        index = torch.tensor(items, device=self.states.device)
        return Memory(self.states[index], self.mask[index], self.pointable[index])


def encode_utterances(encoder: Encoder, utterances: Sequence[Subwords]) -> Memory:
    """Return the encoder's states of a batch."""
    device = next(encoder.parameters()).device
    ids = pad([utterance.ids for utterance in utterances], encoder.pad_id).to(device)
    lengths = torch.tensor([len(utterance.ids) for utterance in utterances], device=device).unsqueeze(1)
    places = torch.arange(ids.shape[1], device=device)
    mask = places < lengths
    return Memory(encoder(ids, mask), mask, (places > 0) & (places < lengths - 1))


def pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """Return rows of different lengths as one tensor, filled up with `value`."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows])


def to_numpy(tensor: Tensor) -> Logits:
    """Return a tensor for the search."""
    array: Logits = tensor.detach().float().cpu().numpy()
    return array
