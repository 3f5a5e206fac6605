"""How many bits the matrix products of a training step have.

In bfloat16 the weights, their gradients, sums and norms keep the 32 bits of a float: only the factors of the products
are rounded to 16. Processors that have instructions for it multiply several times as fast then; others are slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode


class Precision(StrEnum):
    """The factors of matrix products."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


@contextmanager
def multiplying_in(precision: Precision, device: torch.device) -> Iterator[None]:
    """Have the forward pass inside, and the backward pass that belongs to it, multiply in a precision."""
    if precision is Precision.FLOAT32:
        yield
        return
    with torch.autocast(device.type, torch.bfloat16), _AttentionInFloat():
        yield


class _AttentionInFloat(TorchFunctionMode):
    """Leaves attention in float32: on a CPU its backward pass takes several times as long in bfloat16."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401  # whatever the function returns
        if func is not scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        device = args[0].device.type
        with torch.autocast(device, enabled=False):
            return func(*map(_to_float, args), **{name: _to_float(value) for name, value in (kwargs or {}).items()})


def _to_float(value: object) -> object:
    return value.float() if isinstance(value, Tensor) and value.is_floating_point() else value
