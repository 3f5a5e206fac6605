"""The training loop.

Batches, dropout and sampled partitions of a step follow from the seed and the number of the step alone. So a run that
was killed goes on from its last checkpoint and ends with the same weights as one that never was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from lightning.fabric import Fabric

from treepiece.errors import RecipeError
from treepiece.models.trained import TrainedModel, save_model
from treepiece.models.treepiece import TreePieceModel
from treepiece.training.average import WeightAverage
from treepiece.training.batches import plan_epoch
from treepiece.training.checkpoint import TrainingTensors, load_checkpoint, save_checkpoint
from treepiece.training.examples import Example
from treepiece.training.log import CsvLog
from treepiece.training.objectives import Objective
from treepiece.training.observer import EpochReport, Observer, StepReport
from treepiece.training.precision import multiplying_in
from treepiece.training.prediction import count_matches
from treepiece.training.recipe import Recipe
from treepiece.training.schedule import make_optimizer, rate_factor
from treepiece.training.weighing import FITTED, fit_weights

_LOG_STEPS = 20


@dataclass
class Position:
    """Where a run stands: the next batch, the best validation EM so far, and the epoch that reached it."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best_em: float = -1.0
    best_epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Places:
    """Where a run writes: the folder for the bundle of the best epoch, and the file to go on from."""

    bundle: Path
    checkpoint: Path


class Loop:
    """Trains an objective to the end of its recipe."""

    def __init__(
        self,
        fabric: Fabric,
        objective: Objective,
        trained: TrainedModel,
        recipe: Recipe,
        places: Places,
        observer: Observer,
    ) -> None:
        self._fabric = fabric
        self._trained = trained
        self._recipe = recipe
        self._places = places
        self._observer = observer if fabric.is_global_zero else Observer()
        self._optimizer = make_optimizer(trained.model, recipe)
        self._objective = objective
        self._forward, _ = fabric.setup(objective, self._optimizer)
        self._average = WeightAverage(trained.model, recipe.ema) if recipe.ema else None
        self._tensors = TrainingTensors(trained.model, self._optimizer, self._average)
        self.position = Position()

    def resume(self) -> None:
        """Go back to where the last checkpoint was written."""
        tensors, facts = load_checkpoint(self._places.checkpoint)
        self._tensors.write(tensors)
        self.position = Position(**facts["position"])

    def fit(
        self,
        lengths: Sequence[int],
        validation: Sequence[Example],
        should_stop: Callable[[], bool],
    ) -> bool:
        """Train to the end and return True; or return False, with a checkpoint, as soon as `should_stop` says so.

        `lengths` are those of the training examples.
        """
        here, recipe = self.position, self._recipe
        n_epochs = recipe.n_epochs(len(lengths))
        log = CsvLog(self._places.bundle, here.step) if self._fabric.is_global_zero else None
        clock = _Clock(recipe.checkpoint_seconds)
        while here.epoch < n_epochs and not self._is_stale():
            plan = plan_epoch(
                lengths,
                recipe.batch,
                seed=recipe.seed,
                epoch=here.epoch,
                branch=recipe.branch,
                least=self._fabric.world_size,
            )
            n_steps = n_epochs * len(plan)
            self._objective.begin_epoch(here.epoch)
            for places in plan[here.batch :]:
                losses = self._step(places, rate_factor(recipe.optimizer, here.step, n_steps, here.epoch))
                here.step, here.batch = here.step + 1, here.batch + 1
                clock.count(len(places))
                self._observer.step(StepReport(here.epoch, n_epochs, here.step, n_steps, clock.speed, losses))
                if log and here.step % _LOG_STEPS == 0:
                    log.write(here.step, here.epoch, losses)
                if self._all_agree(should_stop()):
                    self._save()
                    return False
                if clock.is_time_to_save():
                    self._save()
            here.epoch, here.batch = here.epoch + 1, 0
            if recipe.validates_after(here.epoch, n_epochs):
                self._end_epoch(validation, n_epochs, clock.speed, log)
                clock.restart()
        return True

    def _is_stale(self) -> bool:
        patience, here = self._recipe.patience, self.position
        if patience is None or not here.history:
            return False
        return here.history[-1]["epoch"] - here.best_epoch >= patience

    def _step(self, places: Sequence[int], factor: float) -> dict[str, float]:
        for group in self._optimizer.param_groups:
            group["lr"] = group["highest"] * factor
        rank, world = self._fabric.global_rank, self._fabric.world_size
        seeds = np.random.SeedSequence([self._recipe.seed, self.position.step, rank, self._recipe.branch])
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0] >> np.uint64(1)))
        with multiplying_in(self._recipe.precision, self._fabric.device):
            losses: dict[str, torch.Tensor] = self._forward(places[rank::world])
        values = {name: float(loss.detach()) for name, loss in losses.items()}
        if not math.isfinite(values["loss"]):
            raise RecipeError(
                f"the loss is {values['loss']} after step {self.position.step:,}: lower the learning rates"
            )
        self._fabric.backward(losses["loss"])
        if self._recipe.optimizer.clip:
            torch.nn.utils.clip_grad_norm_(self._trained.model.parameters(), self._recipe.optimizer.clip)
        self._optimizer.step()
        self._optimizer.zero_grad()
        if self._average:
            self._average.update(self.position.step + 1)
        return values

    def _end_epoch(self, validation: Sequence[Example], n_epochs: int, speed: float, log: CsvLog | None) -> None:
        """Validate, keep the model if it is the best so far, and save."""
        here = self.position
        with self._average.in_place() if self._average else nullcontext():
            n_rows, em, em_s = self._validate(validation)
            is_best = em > here.best_em
            if is_best:
                here.best_em, here.best_epoch = em, here.epoch
            here.history.append({"epoch": here.epoch, "em": em, "em_s": em_s})
            if is_best and self._fabric.is_global_zero:
                validation_facts = {"rows": n_rows, "em": em, "epoch": here.epoch, "history": here.history}
                self._trained.facts = {**self._trained.facts, "validation": validation_facts}
                save_model(self._places.bundle, self._trained)
        if log:
            log.write(here.step, here.epoch, {"validation_em": em, "validation_em_s": em_s, "rows_per_second": speed})
        self._save()
        self._observer.epoch(EpochReport(here.epoch, n_epochs, em, em_s, n_rows, is_best, speed))

    def _validate(self, examples: Sequence[Example]) -> tuple[int, float, float]:
        """Return the number of rows, EM and EM-S, each process having parsed its share of the rows."""
        model = self._trained.model
        if isinstance(model, TreePieceModel):
            fit_weights(model, examples[:FITTED])  # the same rows and so the same weights in each process
        share = examples[self._fabric.global_rank :: self._fabric.world_size]
        counts = count_matches(model, share, lambda n: self._observer.stage("validating", n, len(share)))
        n_rows, exact, skeletons = self._sum(counts).tolist()
        return n_rows, exact / n_rows, skeletons / n_rows

    def _all_agree(self, stop: bool) -> bool:
        """Return whether any of the processes wants to stop, so that all stop after the same step."""
        return bool(self._sum(torch.tensor(int(stop))))

    def _sum(self, value: torch.Tensor) -> torch.Tensor:
        """Return the sum over all processes."""
        if self._fabric.world_size == 1:
            return value
        total = self._fabric.all_reduce(value.to(self._fabric.device), reduce_op="sum")
        assert isinstance(total, torch.Tensor)  # as what went in
        return total

    def _save(self) -> None:
        if self._fabric.is_global_zero:
            save_checkpoint(self._places.checkpoint, self._tensors.read(), {"position": asdict(self.position)})


class _Clock:
    """Counts rows and seconds, and tells when the next checkpoint is due."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._rows = 0
        self._busy = 0.0
        self.restart()

    def restart(self) -> None:
        """Start counting again after a pause that is not to count."""
        self._last = self._saved = time.monotonic()

    def count(self, rows: int) -> None:
        """Count rows that have been worked on since the last time."""
        now = time.monotonic()
        self._busy += now - self._last
        self._last = now
        self._rows += rows

    @property
    def speed(self) -> float:
        """Rows a second."""
        return self._rows / self._busy if self._busy else 0.0

    def is_time_to_save(self) -> bool:
        """Return whether a checkpoint is due, and if so wait for the next."""
        if time.monotonic() - self._saved < self._seconds:
            return False
        self._saved = time.monotonic()
        return True
