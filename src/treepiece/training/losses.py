"""Cross-entropy where some classes are impossible."""

from __future__ import annotations

import torch
from torch import Tensor

IGNORED = -100
"""In place of a target: a position that is not learned from."""


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the mean cross-entropy over the targets that are not ignored; 0 where all are.

    Label smoothing gives a share of the probability to all classes alike, but none to impossible ones, whose logit is
    the lowest number: their log-probability would swamp every other. Shape: logits (..., classes), targets (...).
    """
    logits = logits.float()  # they may come in fewer bits, in which a sum over classes would be far off
    log_p = logits.log_softmax(-1)
    is_target = targets != IGNORED
    hit = log_p.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    if smoothing:
        possible = logits > torch.finfo(logits.dtype).min / 2
        spread = log_p.masked_fill(~possible, 0.0).sum(-1) / possible.sum(-1)
        hit = (1 - smoothing) * hit + smoothing * spread
    return -hit.masked_fill(~is_target, 0.0).sum() / is_target.sum().clamp(min=1)
