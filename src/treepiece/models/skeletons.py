"""Skeletons as tensors, for the span decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treepiece.decoding.skeleton import SkeletonTokens
from treepiece.models.utterances import pad


@dataclass(frozen=True)
class Skeletons:
    """A batch of skeletons.

    Shape: tokens (batch, n); mask (batch, n), True where there is a token; is_node (batch, n), True where a node opens.
    """

    tokens: Tensor
    mask: Tensor
    is_node: Tensor


def batch_skeletons(read: Sequence[SkeletonTokens], closing: int, device: torch.device) -> Skeletons:
    """Return skeletons as a batch; `closing` is the token with which a node closes."""
    tokens = pad([skeleton.tokens for skeleton in read], closing).to(device)
    mask = pad([[1] * len(skeleton.tokens) for skeleton in read], 0).bool().to(device)
    return Skeletons(tokens, mask, tokens != closing)
