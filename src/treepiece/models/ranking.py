"""Another look at the skeletons of a beam.

The right tree is often in the beam and not first in it. The unit decoder chose when it had seen no tree as a whole; the
span decoder reads whole skeletons beside the utterance, so a score of its states says how well the two fit:

    score(skeleton) = sum over its nodes of f(state of the node)
    p'(skeleton)    = p(skeleton) * exp(weight * score(skeleton)), with the beam's total as before

where f is a small network. It is trained to give the gold skeleton more than the others of the beam. The weight is one
number, fitted on rows that were held out: on rows that were trained on, p is too good to need help.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Ranker(nn.Module):
    """Scores skeletons, given what the span decoder makes of them."""

    weight: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))
        self.register_buffer("weight", torch.ones(()))

    def forward(self, states: Tensor, is_node: Tensor) -> Tensor:
        """Return a score for each skeleton. Shape: states (batch, n, width), is_node (batch, n), result (batch,)."""
        scores: Tensor = self.score(states).squeeze(-1)
        return scores.masked_fill(~is_node, 0.0).sum(1)
