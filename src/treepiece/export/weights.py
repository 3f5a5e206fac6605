"""PyTorch's weights beside the graphs: a runtime does without, but training can go on from them."""

from __future__ import annotations

from enum import StrEnum

import torch

from treepiece.bundle import WEIGHTS
from treepiece.errors import BundleError
from treepiece.models.trained import TrainedModel, write_weights


class Weights(StrEnum):
    """Which weights a bundle keeps: none, all that training found out, or the same rounded, at half of the size."""

    NONE = "none"
    FLOAT = "float"
    HALF = "half"


_TYPES = {Weights.FLOAT: torch.float32, Weights.HALF: torch.float16}


def weight_files(trained: TrainedModel, weights: Weights) -> dict[str, bytes]:
    """Return the file of the weights, if any are kept.

    Rounding twice is rounding once, so a model that was read in half precision is written as it was.
    """
    if weights is Weights.NONE:
        return {}
    if weights is Weights.HALF:
        _check_range(trained)
    return {WEIGHTS: write_weights(trained.model, _TYPES[weights])}


def _check_range(trained: TrainedModel) -> None:
    """Raise if half precision would make infinity of a number, which no parse may need to meet before it is noticed."""
    largest = torch.finfo(torch.float16).max
    for name, tensor in trained.model.state_dict().items():
        worst = float(tensor.abs().max()) if tensor.is_floating_point() and tensor.numel() else 0.0
        if not worst <= largest:
            raise BundleError(
                f"the weight {name} has the number {worst:g}, half precision goes to {largest:,.0f}; nothing was "
                "written: keep the weights with --weights float"
            )
