"""An exponential moving average of weights, which is often a better model than the last step's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The average of a model's trainable weights over the steps: average = decay * average + (1 - decay) * weights.

    The decay starts low, so that the first weights, which are random, do not linger.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        self._weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.averages = {name: weight.detach().clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after a step, counted from 1."""
        decay = min(self._decay, step / (step + 10))
        torch._foreach_lerp_(list(self.averages.values()), list(self._weights.values()), 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the averages in place of the weights for a while."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, weight in self._weights.items():
            held: Tensor = weight.detach().clone()
            weight.copy_(self.averages[name])
            self.averages[name].copy_(held)
