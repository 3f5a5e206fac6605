"""The checkpoint of a run: one file with all tensors and, in its header, everything else as JSON.

A single file can be replaced atomically, so a run that is killed while saving still has its previous checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from treepiece.bundle import replace_files
from treepiece.errors import CheckpointError

_METADATA = "metadata"


def training_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return all tensors of a run by name: the weights, and the optimizer's moments of each."""
    tensors = {f"weight/{name}": weight.detach() for name, weight in model.state_dict().items()}
    for name, weight in model.named_parameters():
        tensors |= {f"{key}/{name}": moment for key, moment in optimizer.state.get(weight, {}).items()}
    return tensors


@torch.no_grad()
def restore_tensors(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Set the tensors that `training_tensors` returned."""
    model.load_state_dict({name.partition("/")[2]: t for name, t in tensors.items() if name.startswith("weight/")})
    for name, weight in model.named_parameters():
        state = {
            key: tensors[f"{key}/{name}"].to(weight.device, copy=True)
            for key in ("step", "exp_avg", "exp_avg_sq")
            if f"{key}/{name}" in tensors
        }
        if state:
            optimizer.state[weight] = state


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Replace a checkpoint; if that fails, the previous one is kept."""
    plain = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    data = safetensors.torch.save(plain, {_METADATA: json.dumps(metadata)})
    try:
        replace_files(path.parent, {path.name: data})
    except OSError as error:
        before = "the one before is unchanged" if path.exists() else "there was none before"
        raise CheckpointError(
            f"{path}: the checkpoint cannot be written: {error.strerror}; {before}. "
            "Make room and continue with --resume"
        ) from error


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the metadata that `save_checkpoint` wrote."""
    try:
        with safe_open(path, "pt") as file:
            metadata: dict[str, Any] = json.loads((file.metadata() or {})[_METADATA])
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118  # not a dict
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(
            f"{path}: not a checkpoint that training can continue from: {error}; delete it to start from the beginning"
        ) from None
