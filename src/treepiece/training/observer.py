"""What a training run tells whoever watches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class StepReport:
    """After a step: how far the run is, how fast, and the losses by name."""

    epoch: int
    n_epochs: int
    step: int
    n_steps: int
    rows_per_second: float
    losses: Mapping[str, float]


@dataclass(frozen=True)
class EpochReport:
    """After an epoch: validation EM and EM-S, over how many rows, and whether there was no better EM before."""

    epoch: int
    n_epochs: int
    em: float
    em_s: float
    n_rows: int
    is_best: bool
    rows_per_second: float


class Observer:
    """Watches a run; this one looks away."""

    def stage(self, name: str, done: float, total: float | None) -> None:
        """Hear how far a stage of the preparation or of a validation is."""

    def step(self, report: StepReport) -> None:
        """Hear of a step."""

    def epoch(self, report: EpochReport) -> None:
        """Hear of an epoch."""

    def remark(self, text: str) -> None:
        """Hear of something that a person should know."""
