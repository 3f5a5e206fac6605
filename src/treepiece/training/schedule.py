"""The optimizer and the course of its learning rates."""

from __future__ import annotations

import math

import torch

from treepiece.models.build import ParserModel
from treepiece.training.recipe import MODULES, OptimizerConfig, Recipe, Schedule


def rate_factor(config: OptimizerConfig, step: int, n_steps: int, epoch: int) -> float:
    """Return the share of the highest learning rate that a step has; steps and epochs count from 0.

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
    """Return AdamW with a group of weights for each module, which has the module's learning rate."""
    groups = []
    for name in MODULES[recipe.model]:
        module = getattr(model, name)
        if module is None:
            continue
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        rate = recipe.learning_rate(name)
        groups.append({"params": weights, "lr": rate, "highest": rate})
    return torch.optim.AdamW(groups, eps=1e-8, weight_decay=recipe.optimizer.weight_decay, fused=True)
