"""Batches: examples as padded tensors, the input of a loss.

    examples -> model.collate -> Batch -> model.loss -> losses by name

A batch has utterances, and the targets of its model: units and spans (TreePiece), or frames as tokens (the
baselines, and TreePiece with a reranker). Positions without a target have `PADDING`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor

from treepiece.data.examples import Example
from treepiece.decoding.linearization import SkeletonTokens
from treepiece.models.layers import PADDING
from treepiece.text import Subwords


class Tensors:
    """The base of (nested) dataclasses of tensors: they move between devices as one."""

    def to(self, device: torch.device | str) -> Self:
        """Return a copy on a device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return type(self)(**{name: value if value is None else value.to(device) for name, value in values.items()})


@dataclass(frozen=True)
class Utterances(Tensors):
    """A batch of utterances.

    Shape: ids (batch, n), special tokens included; mask (batch, n), True for subwords and special tokens; pointable
    (batch, n), True for subwords.
    """

    ids: Tensor
    mask: Tensor
    pointable: Tensor


@dataclass(frozen=True)
class UnitTargets(Tensors):
    """The inputs and targets of the unit decoder.

    Shape: (batch, steps) each. `inputs` are the start symbol and then units, `placeholders` the parent label of the
    placeholder to fill, `targets` the units.
    """

    inputs: Tensor
    placeholders: Tensor
    targets: Tensor


@dataclass(frozen=True)
class SpanTargets(Tensors):
    """The inputs and targets of the span decoder.

    Shape: (batch, n) each. `tokens` are those of skeletons, and the mask is True for each of them; `first` and `last`
    are the indices of the states of each leaf's first and last subword, at the position of the leaf in its skeleton.
    """

    tokens: Tensor
    mask: Tensor
    first: Tensor
    last: Tensor


@dataclass(frozen=True)
class Batch(Tensors):
    """Utterances with the targets of a model; `frames` are frames as tokens. Shape: frames (batch, tokens)."""

    utterances: Utterances
    units: UnitTargets | None = None
    spans: SpanTargets | None = None
    frames: Tensor | None = None

    def __len__(self) -> int:
        return len(self.utterances.ids)


def pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """Return rows of different lengths as one tensor, padded with `value`."""
    max_length = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (max_length - len(row))] for row in rows])


def collate_utterances(utterances: Sequence[Subwords], pad_id: int) -> Utterances:
    """Return utterances as a batch."""
    ids = pad([utterance.ids for utterance in utterances], pad_id)
    lengths = torch.tensor([len(utterance.ids) for utterance in utterances]).unsqueeze(1)
    places = torch.arange(ids.shape[1])
    return Utterances(ids, places < lengths, (places > 0) & (places < lengths - 1))


def collate_skeletons(skeletons: Sequence[SkeletonTokens], closing: int) -> tuple[Tensor, Tensor]:
    """Return the tokens of skeletons and their mask; `closing` is the token that closes a node."""
    tokens = pad([skeleton.tokens for skeleton in skeletons], closing)
    lengths = torch.tensor([len(skeleton.tokens) for skeleton in skeletons]).unsqueeze(1)
    return tokens, torch.arange(tokens.shape[1]) < lengths


def collate_spans(examples: Sequence[Example], skeletons: Sequence[SkeletonTokens], closing: int) -> SpanTargets:
    """Return the targets of the span decoder for examples with these skeletons; an empty slot points at nothing."""
    tokens, mask = collate_skeletons(skeletons, closing)
    first, last = (torch.full(tokens.shape, PADDING) for _ in range(2))
    for row, (example, skeleton) in enumerate(zip(examples, skeletons, strict=True)):
        for place, span in zip(skeleton.leaves, example.spans, strict=True):
            if span.start < span.end:
                # Subword i has state i + 1, and the end is exclusive.
                first[row, place], last[row, place] = span.start + 1, span.end
    return SpanTargets(tokens, mask, first, last)
