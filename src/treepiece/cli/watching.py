"""A training run as a person sees it: a bar with speed, losses and time left, and a line for each epoch."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from treepiece.cli.console import note, stderr
from treepiece.training.observer import EpochReport, Observer, StepReport

_TRAINING = "training"


class Watcher(Observer):
    """Draws bars on standard error where that is a terminal; elsewhere it writes a line for each epoch."""

    def __init__(self, *, is_shown: bool) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            TextColumn("left"),
        )
        self._is_shown = is_shown
        is_disabled = not (is_shown and stderr().is_terminal)
        self._bars = Progress(*columns, console=stderr(), transient=True, disable=is_disabled)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bars.stop()

    def _update(self, name: str, done: float, total: float | None, state: str = "") -> None:
        for other in set(self._tasks) - {name, _TRAINING}:
            self._bars.remove_task(self._tasks.pop(other))  # one stage at a time; some end before their total
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=total, state=state)
        self._bars.update(self._tasks[name], completed=done, total=total, state=state)

    def stage(self, name: str, done: float, total: float | None) -> None:
        """Draw how far a stage is; take the bar away when it is done."""
        self._update(name, done, total)
        if total is not None and done >= total:
            self._bars.remove_task(self._tasks.pop(name))

    def step(self, report: StepReport) -> None:
        """Draw how far the training is."""
        state = f"epoch {report.epoch + 1}/{report.n_epochs}, {report.rows_per_second:.0f} rows/s"
        self._update(_TRAINING, report.step, report.n_steps, f"{state}, loss {report.losses['loss']:.3f}")

    def epoch(self, report: EpochReport) -> None:
        """Write a line about an epoch."""
        if self._is_shown:
            note(
                f"epoch {report.epoch}/{report.n_epochs}: validation EM {report.em:.4f}, EM-S {report.em_s:.4f} "
                f"on {report.n_rows:,} rows{', the best so far' if report.is_best else ''} "
                f"({report.rows_per_second:.0f} rows/s)"
            )

    def remark(self, text: str) -> None:
        """Write a line."""
        if self._is_shown:
            note(text)
