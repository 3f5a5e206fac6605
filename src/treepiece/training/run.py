"""A training run: a folder that is a bundle when the run is complete, and from which it can be resumed until then.

DIR/manifest.json, ...   the bundle of the best epoch so far
DIR/log/                 losses and validation scores
DIR/run/                 what is needed to continue: the recipe, the initial model, the last checkpoint
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric

from treepiece.bundle import MANIFEST, TRAINING, read_bundle, replace_files
from treepiece.data.examples import Example, make_examples
from treepiece.data.fingerprints import fingerprint, skeleton_digest
from treepiece.data.out_of_scope import bundled_requests
from treepiece.definition import ModelKind
from treepiece.errors import CheckpointError, DataError, RecipeError, TreepieceError
from treepiece.models.trained import TrainedModel, load_model, save_model
from treepiece.progress import Progress
from treepiece.training.loop import LOG, TrainingLoop
from treepiece.training.preparation import Data, apply_recipe, inherit, new_model, training_examples
from treepiece.training.recipe import Recipe, make_recipe
from treepiece.training.scoping import fit_scope

RUN = "run"
_PLAN = "plan.json"
_START = "start"
_LAST = "last.safetensors"
_INHERITED = {"encoder", "decoder", "units", "reranker_loss_weight"}
"""Settings that are those of the model to start from."""


@dataclass(frozen=True)
class TrainingResult:
    """The result of a run: its folder, whether it is complete, and the validation scores of the best epoch."""

    folder: Path
    is_complete: bool
    kind: str
    rows: int
    validation_rows: int
    validation_em: float
    best_epoch: int


def is_begun(folder: Path) -> bool:
    """Return whether a folder has a run that is not complete."""
    return (folder / RUN / _PLAN).is_file()


def is_finished(folder: Path) -> bool:
    """Return whether a folder has a model whose training is complete."""
    return (folder / MANIFEST).is_file() and not is_begun(folder)


def read_result(folder: Path) -> TrainingResult:
    """Return the result of a run from its folder; before the first validation there are no scores."""
    complete = is_finished(folder)
    if not (folder / MANIFEST).is_file():
        return TrainingResult(folder, complete, planned_recipe(folder).kind, 0, 0, 0.0, 0)
    bundle = read_bundle(folder, check=False)
    metadata = bundle.read_json(TRAINING)
    scores = metadata["validation"]
    return TrainingResult(
        folder, complete, bundle.kind, metadata["rows"], scores["rows"], scores["em"], scores["epoch"]
    )


def begin(
    folder: Path, data: Data, recipe: Recipe, *, init: str | Path | None, fabric: Fabric, progress: Progress
) -> TrainedModel:
    """Return the initial model of a new run, after saving what is needed to continue the run.

    Only the first process does this. If it fails, all processes raise, so that none waits forever.
    """
    trained, problem = None, None
    if fabric.is_global_zero:
        try:
            trained = _begin(folder, data, recipe, init, progress)
        except TreepieceError as error:
            if fabric.world_size == 1:
                raise
            problem = str(error)
    problem = fabric.broadcast(problem)
    if problem is not None:
        raise CheckpointError(problem)
    return trained or load_model(folder / RUN / _START)


def _begin(folder: Path, data: Data, recipe: Recipe, init: str | Path | None, progress: Progress) -> TrainedModel:
    if is_begun(folder) or (folder / MANIFEST).exists():
        raise CheckpointError(
            f"{folder}: there is a training run already: continue it with --resume, or choose another --output"
        )
    if folder.is_dir() and {path.name for path in folder.iterdir()} - {RUN, LOG}:
        raise CheckpointError(f"{folder}: this folder has other files in it: choose a new one as --output")
    try:
        # Remove what a killed process may have left.
        shutil.rmtree(folder / RUN, ignore_errors=True)
        (folder / RUN).mkdir(parents=True)
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be written: {error.strerror}; choose another --output") from None
    start = load_model(init) if init is not None else None
    if start is not None:
        recipe = inherit(recipe, start)
    trained = new_model(data.train, recipe, progress, start)
    trained.metadata = _metadata(data, recipe, {} if start is None else start.metadata)
    save_model(folder / RUN / _START, trained)
    plan = {"recipe": recipe.to_json(), "data": fingerprint(data.train), "validation": fingerprint(data.validation)}
    try:
        replace_files(folder / RUN, {_PLAN: json.dumps(plan).encode()})  # last, because a folder with a plan is a run
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be written: {error.strerror}") from None
    return trained


def _metadata(data: Data, recipe: Recipe, start: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a run and of the runs before it; `start` is the metadata of the last of these."""
    own = {"recipe": recipe.to_json(), "rows": len(data.train)}
    skeletons = {skeleton_digest(row.skeleton) for row in data.train} | set(start.get("skeletons", ()))
    before = {name: value for name, value in start.items() if name not in ("skeletons", "before")}
    runs = [*start.get("before", ()), before] if before else []
    return own | {"skeletons": sorted(skeletons)} | ({"before": runs} if runs else {})


def reopen(folder: Path, data: Data) -> TrainedModel:
    """Return the initial model of a run to continue; raise if it began with other data."""
    plan = _plan(folder)
    for name, rows in (("data", data.train), ("validation", data.validation)):
        if plan[name] != fingerprint(rows):
            raise CheckpointError(
                f"{folder}: the run began with other {name} rows: give the same data, or begin a new run elsewhere"
            )
    return load_model(folder / RUN / _START)


def fit(
    folder: Path,
    data: Data,
    trained: TrainedModel,
    *,
    fabric: Fabric,
    progress: Progress,
    should_stop: Callable[[], bool],
) -> TrainingResult:
    """Train from the last checkpoint of a run, or from its initial model, until it is complete or `should_stop`."""
    last = folder / RUN / _LAST
    recipe = planned_recipe(folder)
    try:
        examples, validation = _examples(data, trained, recipe, fabric, progress)
        apply_recipe(trained.model, recipe)
        loop = TrainingLoop(fabric, trained, recipe, folder, last, progress)
    except TreepieceError:
        if fabric.is_global_zero and not last.exists():
            shutil.rmtree(folder / RUN)  # nothing is lost, and the folder can be used with other data
        raise
    if last.is_file():
        loop.resume()
        progress.message(f"continuing after step {loop.position.step:,}, in epoch {loop.position.epoch + 1}")
    is_complete = loop.fit(examples, validation, should_stop)
    if is_complete and fabric.is_global_zero:
        _learn_scope(folder, data, recipe, progress)
        (folder / RUN / _PLAN).unlink()  # First, because a folder without a plan is not a run, whatever else is in it.
        shutil.rmtree(folder / RUN)
    fabric.barrier()
    return read_result(folder)


def _learn_scope(folder: Path, data: Data, recipe: Recipe, progress: Progress) -> None:
    """Add the classifier of scope to the best model of a run; graphs of the baselines have no states to read."""
    if not recipe.scope or recipe.kind is not ModelKind.TREEPIECE:
        return
    trained = load_model(folder)
    utterances = [row.frame.utterance for row in data.train if row.frame is not None]
    is_default = data.out_of_scope is None
    others = bundled_requests() if data.out_of_scope is None else data.out_of_scope
    trained.scope, near = fit_scope(
        trained, utterances, others, seed=recipe.seed, progress=progress, is_default=is_default
    )
    if near:
        progress.message(f"scope: left out requests that look like training rows: {', '.join(near)}")
    save_model(folder, trained)


def _examples(
    data: Data, trained: TrainedModel, recipe: Recipe, fabric: Fabric, progress: Progress
) -> tuple[Sequence[Example], Sequence[Example]]:
    """Return the examples to train on, and those to validate on."""
    examples = training_examples(data.train, trained, progress)
    validation, left_out = make_examples(data.validation, trained.subwords)
    if left_out:
        progress.message(f"left out {len(left_out):,} of {len(data.validation):,} validation rows")
    if not validation:
        raise DataError("no row is left to validate on: give others, or set a larger holdout")
    if min(recipe.batch_size, len(examples)) < fabric.world_size:
        raise RecipeError(
            f"{fabric.world_size} processes need at least {fabric.world_size} rows per batch: the batch size is "
            f"{recipe.batch_size}, and there are {len(examples)} rows"
        )
    return examples, validation


def check_same(folder: Path, given: Recipe, *, has_init: bool) -> None:
    """Raise if a given setting differs from that of the run in a folder."""
    before, now = planned_recipe(folder).to_json(), given.to_json()
    for name in sorted(given.model_fields_set - (_INHERITED if has_init else set())):
        if before[name] != now[name]:
            raise CheckpointError(
                f"--resume: the run began with {name} = {before[name]!r}, now it is {now[name]!r}: "
                "leave it out, or begin a new run in another folder"
            )


def planned_recipe(folder: Path) -> Recipe:
    """Return the recipe of the run in a folder."""
    return make_recipe(_plan(folder)["recipe"])


def _plan(folder: Path) -> dict[str, Any]:
    try:
        plan = json.loads((folder / RUN / _PLAN).read_bytes())
        _ = plan["recipe"], plan["data"], plan["validation"]
    except FileNotFoundError:
        raise CheckpointError(f"{folder}: there is no training run to continue: leave --resume out") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder}: the run's {_PLAN} is damaged ({error}): begin a new run elsewhere") from None
    return dict(plan)


def make_fabric() -> Fabric:
    """Return one process on the best device, or as many processes as `torchrun` has started."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return Fabric(accelerator="auto", devices=1)
    local, world = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    fabric = Fabric(accelerator="auto", strategy="ddp", devices=local, num_nodes=world // local)
    fabric.launch()
    return fabric


def leave(fabric: Fabric) -> None:
    """End the connection in all processes at once: one that left early would abort the others."""
    if fabric.world_size > 1:
        fabric.barrier()
        torch.distributed.destroy_process_group()
