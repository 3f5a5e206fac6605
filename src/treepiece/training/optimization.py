"""The optimizer, its learning rates, and the precision of its matrix products.

In bfloat16 the weights, their gradients, sums and norms stay in 32 bits: only the factors of matrix products are
rounded to 16. This is several times as fast on processors with instructions for it, and slower on others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from treepiece.models.trained import ParserModel
from treepiece.training.recipe import MODULES, MatrixPrecision, OptimizerConfig, Recipe, Schedule


def rate_factor(config: OptimizerConfig, step: int, n_steps: int, epoch: int) -> float:
    """Return the learning rate of a step, as a share of the highest; steps and epochs count from 0.

    >>> [round(rate_factor(OptimizerConfig(warmup=0.2), step, 10, 0), 2) for step in range(0, 10, 3)]
    [0.5, 0.96, 0.51, 0.06]
    """
    n_warmup = config.warmup * n_steps
    if step < n_warmup:
        return min(1.0, (step + 1) / n_warmup)
    if config.schedule is Schedule.EXPONENTIAL:
        return config.decay**epoch
    done = (step - n_warmup) / max(1.0, n_steps - n_warmup)
    return config.floor + (1 - config.floor) * 0.5 * (1 + math.cos(math.pi * done))


def make_optimizer(model: ParserModel, recipe: Recipe) -> torch.optim.AdamW:
    """Return AdamW with one parameter group per module, which has the module's learning rate."""
    groups = []
    for name in MODULES[recipe.kind]:
        module = getattr(model, name)
        if module is None:
            continue
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        rate = recipe.learning_rate(name)
        groups.append({"params": weights, "lr": rate, "highest": rate})
    return torch.optim.AdamW(groups, eps=1e-8, weight_decay=recipe.optimizer.weight_decay, fused=True)


@contextmanager
def multiplying_in(precision: MatrixPrecision, device: torch.device) -> Iterator[None]:
    """Run the forward pass inside, and its backward pass, with matrix products in a precision."""
    if precision is MatrixPrecision.FLOAT32:
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
    ) -> Any:  # noqa: ANN401  # the result of the function
        if func is not scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        device = args[0].device.type
        with torch.autocast(device, enabled=False):
            return func(*map(_to_float, args), **{name: _to_float(value) for name, value in (kwargs or {}).items()})


def _to_float(value: object) -> object:
    return value.float() if isinstance(value, Tensor) and value.is_floating_point() else value
