"""A training run on disk: one file that holds all tensors and, in its header, everything else as JSON.

One file can be replaced at once, so a run that is killed while it saves still has the checkpoint before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from treepiece.errors import CheckpointError
from treepiece.files import replace_files
from treepiece.training.average import WeightAverage

_FACTS = "facts"


@dataclass(frozen=True)
class TrainingTensors:
    """All tensors of a run: weights, the optimizer's moments of each, and their average if there is one."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    average: WeightAverage | None

    def read(self) -> dict[str, Tensor]:
        """Return the tensors by name."""
        tensors = {f"weight/{name}": weight.detach() for name, weight in self.model.state_dict().items()}
        for name, weight in self.model.named_parameters():
            for key, moment in self.optimizer.state.get(weight, {}).items():
                tensors[f"{key}/{name}"] = moment
        if self.average:
            tensors |= {f"average/{name}": average for name, average in self.average.averages.items()}
        return tensors

    @torch.no_grad()
    def write(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over the tensors that `read` returned."""
        weights = {name.partition("/")[2]: tensor for name, tensor in tensors.items() if name.startswith("weight/")}
        self.model.load_state_dict(weights)
        for name, weight in self.model.named_parameters():
            state = {
                key: tensors[f"{key}/{name}"].to(weight.device, copy=True)
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"{key}/{name}" in tensors
            }
            if state:
                self.optimizer.state[weight] = state
        if self.average:
            for name, average in self.average.averages.items():
                average.copy_(tensors[f"average/{name}"])


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Replace a checkpoint; where that fails the one before is still there."""
    plain = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    data = safetensors.torch.save(plain, {_FACTS: json.dumps(facts)})
    try:
        replace_files(path.parent, {path.name: data})
    except OSError as error:
        before = "the one before is unchanged" if path.exists() else "there was none before"
        raise CheckpointError(
            f"{path}: the checkpoint cannot be written: {error.strerror}; {before}. Make room and go on with --resume"
        ) from error


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the facts that `save_checkpoint` wrote."""
    try:
        with safe_open(path, "pt") as file:
            facts: dict[str, Any] = json.loads((file.metadata() or {})[_FACTS])
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118  # it is no dict
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path}: not a checkpoint that can be gone on with: {error}; delete it to start from the beginning"
        ) from None
