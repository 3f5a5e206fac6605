"""The training loop.

Batches, dropout, sampled partitions and noise depend only on the seeds and the number of the step. So a run that was
killed continues from its last checkpoint, and ends with the same weights as an uninterrupted run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from lightning.fabric import Fabric
from lightning.fabric.loggers.csv_logs import CSVLogger
from torch.utils.data import DataLoader

from treepiece.data.examples import Example
from treepiece.errors import CheckpointError, RecipeError
from treepiece.models.batch import Batch
from treepiece.models.trained import TrainedModel, save_model
from treepiece.models.treepiece_model import TreePieceModel
from treepiece.progress import Progress
from treepiece.training.batches import plan_epoch
from treepiece.training.checkpoint import load_checkpoint, restore_tensors, save_checkpoint, training_tensors
from treepiece.training.optimization import make_optimizer, multiplying_in, rate_factor
from treepiece.training.prediction import predict
from treepiece.training.preparation import noised_examples
from treepiece.training.recipe import Recipe
from treepiece.training.tuning import MAX_TUNING_ROWS, tune

LOG = "log"
"""The folder of a run's log: `log/version_N/metrics.csv`, with one version per start of the run."""
_LOG_STEPS = 20


@dataclass
class Position:
    """The position of a run: the next batch, the best validation EM so far, and the epoch that reached it."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best_em: float = -1.0
    best_epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass
class TrainingLoop:
    """Trains a model to the end of its recipe.

    `folder` gets the bundle of the best epoch and the log, `checkpoint` is the file to continue from.
    """

    fabric: Fabric
    trained: TrainedModel
    recipe: Recipe
    folder: Path
    checkpoint: Path
    progress: Progress
    position: Position = field(default_factory=Position)

    def __post_init__(self) -> None:
        self._optimizer = make_optimizer(self.trained.model, self.recipe)
        self._model, _ = self.fabric.setup(self.trained.model, self._optimizer)
        self._model.mark_forward_method("loss")  # so that several processes exchange its gradients

    def resume(self) -> None:
        """Return to the state of the last checkpoint."""
        tensors, metadata = load_checkpoint(self.checkpoint)
        restore_tensors(self.trained.model, self._optimizer, tensors)
        self.position = Position(**metadata["position"])

    def fit(self, examples: Sequence[Example], validation: Sequence[Example], should_stop: Callable[[], bool]) -> bool:
        """Train to the end and return True; or return False, with a checkpoint, as soon as `should_stop` says so."""
        here, recipe = self.position, self.recipe
        n_epochs = recipe.n_epochs(len(examples))
        log = self._open_log()
        clock = _Clock(recipe.checkpoint_seconds)
        while here.epoch < n_epochs and not self._is_stale():
            drawn = self._sample_units(self._add_noise(examples))
            plan = self._plan(drawn)  # by the lengths of this epoch
            n_steps = n_epochs * len(plan)
            for batch in self._batches(drawn, plan):
                losses = self._step(batch, rate_factor(recipe.optimizer, here.step, n_steps, here.epoch))
                clock.count(len(plan[here.batch]))
                here.step, here.batch = here.step + 1, here.batch + 1
                detail = f"epoch {here.epoch + 1}/{n_epochs}, {clock.speed:.0f} rows/s, loss {losses['loss']:.3f}"
                self.progress.update("training", here.step, n_steps, detail)
                if log and here.step % _LOG_STEPS == 0:
                    log.log_metrics({**losses}, here.step)
                if self._sum(torch.tensor(int(should_stop()))):  # any process: all stop after the same step
                    self._save()
                    return False
                if clock.is_time_to_save():
                    self._save()
            here.epoch, here.batch = here.epoch + 1, 0
            if recipe.validates_after(here.epoch, n_epochs):
                self._end_epoch(validation, n_epochs, clock.speed, log)
                clock.restart()
        return True

    def _open_log(self) -> CSVLogger | None:
        if not self.fabric.is_global_zero:
            return None
        try:
            return CSVLogger(self.folder, LOG, flush_logs_every_n_steps=1)
        except OSError as error:
            raise CheckpointError(f"{self.folder / LOG}: cannot be written: {error.strerror}") from error

    def _plan(self, examples: Sequence[Example]) -> list[list[int]]:
        recipe = self.recipe
        return plan_epoch(
            [len(example.subwords.ids) for example in examples],
            recipe.batch_size,
            seed=recipe.seed,
            epoch=self.position.epoch,
            shuffle_seed=recipe.shuffle_seed,
            least=self.fabric.world_size,
        )

    def _batches(self, examples: Sequence[Example], plan: Sequence[list[int]]) -> DataLoader[Example]:
        """Return this process's part of each remaining batch of the epoch."""
        rank, world = self.fabric.global_rank, self.fabric.world_size
        return DataLoader(
            examples,  # type: ignore[arg-type]  # a list is a data set
            batch_sampler=[places[rank::world] for places in plan[self.position.batch :]],
            collate_fn=self.trained.model.collate,
        )

    def _add_noise(self, examples: Sequence[Example]) -> Sequence[Example]:
        """Return the examples with the noise of this epoch, where the recipe adds it."""
        rng = np.random.default_rng([self.recipe.seed, self.position.epoch, 2, self.recipe.shuffle_seed])
        return noised_examples(examples, self.trained, self.recipe.noise, rng)

    def _sample_units(self, examples: Sequence[Example]) -> Sequence[Example]:
        """Return the examples with the partitions of this epoch, where the recipe samples them."""
        model, theta = self.trained.model, self.recipe.units.sampling
        if not theta or not isinstance(model, TreePieceModel):
            return examples
        rng = np.random.default_rng([self.recipe.seed, self.position.epoch, 1, self.recipe.shuffle_seed])
        units = model.tokenizer.sample_batch([example.frame.skeleton for example in examples], rng, theta=theta)
        return [replace(example, unit_ids=unit_ids) for example, unit_ids in zip(examples, units, strict=True)]

    def _is_stale(self) -> bool:
        patience, here = self.recipe.patience, self.position
        if patience is None or not here.history:
            return False
        return here.history[-1]["epoch"] - here.best_epoch >= patience

    def _step(self, batch: Batch, factor: float) -> dict[str, float]:
        for group in self._optimizer.param_groups:
            group["lr"] = group["highest"] * factor
        recipe, rank = self.recipe, self.fabric.global_rank
        seeds = np.random.SeedSequence([recipe.seed, self.position.step, rank, recipe.shuffle_seed])
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0] >> np.uint64(1)))
        with multiplying_in(recipe.precision, self.fabric.device):
            losses: dict[str, torch.Tensor] = self._model.loss(batch.to(self.fabric.device), recipe.loss)
        values = {name: float(loss.detach()) for name, loss in losses.items()}
        if not math.isfinite(values["loss"]):
            raise RecipeError(
                f"the loss is {values['loss']} after step {self.position.step:,}: lower the learning rates"
            )
        self.fabric.backward(losses["loss"])
        if recipe.optimizer.clip:
            torch.nn.utils.clip_grad_norm_(self.trained.model.parameters(), recipe.optimizer.clip)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return values

    def _end_epoch(self, validation: Sequence[Example], n_epochs: int, speed: float, log: CSVLogger | None) -> None:
        """Validate, keep the model if it is the best so far, and save."""
        here = self.position
        n_rows, em, em_s = self._validate(validation)
        is_best = em > here.best_em
        if is_best:
            here.best_em, here.best_epoch = em, here.epoch
        here.history.append({"epoch": here.epoch, "em": em, "em_s": em_s})
        if is_best and self.fabric.is_global_zero:
            validated = {"rows": n_rows, "em": em, "epoch": here.epoch, "history": here.history}
            self.trained.metadata = {**self.trained.metadata, "validation": validated}
            save_model(self.folder, self.trained)
        if log:
            log.log_metrics({"validation_em": em, "validation_em_s": em_s, "rows_per_second": speed}, here.step)
        self._save()
        self.progress.message(
            f"epoch {here.epoch}/{n_epochs}: validation EM {em:.4f}, EM-S {em_s:.4f} on {n_rows:,} rows"
            f"{', the best so far' if is_best else ''} ({speed:.0f} rows/s)"
        )

    def _validate(self, examples: Sequence[Example]) -> tuple[int, float, float]:
        """Return the number of rows, EM and EM-S; each process parses its share of the rows."""
        model = self.trained.model
        # Each process has the same rows, and so the same settings.
        self.trained.decoding = tune(model, examples[:MAX_TUNING_ROWS])
        share = examples[self.fabric.global_rank :: self.fabric.world_size]
        outcomes = predict(
            model, share, self.trained.decoding, lambda n: self.progress.update("validating", n, len(share))
        )
        counts = len(outcomes), sum(one.is_exact for one in outcomes), sum(one.is_skeleton for one in outcomes)
        n_rows, exact, skeletons = self._sum(torch.tensor(counts)).tolist()
        return n_rows, exact / n_rows, skeletons / n_rows

    def _sum(self, value: torch.Tensor) -> torch.Tensor:
        """Return the sum over all processes."""
        if self.fabric.world_size == 1:
            return value
        total = self.fabric.all_reduce(value.to(self.fabric.device), reduce_op="sum")
        assert isinstance(total, torch.Tensor)  # of the same type as the input
        return total

    def _save(self) -> None:
        if self.fabric.is_global_zero:
            tensors = training_tensors(self.trained.model, self._optimizer)
            save_checkpoint(self.checkpoint, tensors, {"position": asdict(self.position)})


class _Clock:
    """Measures speed, and knows when the next checkpoint is due."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._rows = 0
        self._busy = 0.0
        self.restart()

    def restart(self) -> None:
        """Start counting again after a pause, which does not count."""
        self._last = self._saved = time.monotonic()

    def count(self, rows: int) -> None:
        """Count rows that were trained on since the last call."""
        now = time.monotonic()
        self._busy += now - self._last
        self._last = now
        self._rows += rows

    @property
    def speed(self) -> float:
        """Rows per second."""
        return self._rows / self._busy if self._busy else 0.0

    def is_time_to_save(self) -> bool:
        """Return whether a checkpoint is due; if so, schedule the next."""
        if time.monotonic() - self._saved < self._seconds:
            return False
        self._saved = time.monotonic()
        return True
