"""Cross-entropy where some classes are impossible, and how the losses of a model are weighted."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from treepiece.models.layers import PADDING


@dataclass(frozen=True)
class LossConfig:
    """The weights of losses; `label_smoothing` is for units and tokens, never for spans.

    TreePiece minimises units + `span_loss_weight` * (start + end) + `reranker_loss_weight` * reranker.
    """

    label_smoothing: float = 0.1
    span_loss_weight: float = 0.5
    reranker_loss_weight: float = 1.0


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the mean cross-entropy over the targets that are not padding; 0 if all are.

    Label smoothing gives a share of the probability to all classes alike, but none to impossible ones, whose logit is
    the lowest number: their log-probability would dominate all others. Shape: logits (..., classes), targets (...).
    """
    logits = logits.float()  # with fewer bits, a sum over classes would be far off
    log_p = logits.log_softmax(-1)
    is_target = targets != PADDING
    hit = log_p.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    if smoothing:
        possible = logits > torch.finfo(logits.dtype).min / 2
        spread = log_p.masked_fill(~possible, 0.0).sum(-1) / possible.sum(-1)
        hit = (1 - smoothing) * hit + smoothing * spread
    return -hit.masked_fill(~is_target, 0.0).sum() / is_target.sum().clamp(min=1)
