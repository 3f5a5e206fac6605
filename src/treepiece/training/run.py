"""A training run: a folder that is a bundle when it ends, and that can be gone on with until then.

DIR/manifest.json, ...   the bundle of the best epoch so far
DIR/log.csv              losses and validation scores
DIR/run/                 what is needed to go on: the recipe, the model of the beginning, the last checkpoint
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric

from treepiece.bundle import MANIFEST
from treepiece.errors import CheckpointError, DataError, RecipeError, TreepieceError
from treepiece.files import replace_files
from treepiece.models.trained import load_model, save_model
from treepiece.training.configs import read_config, write_config
from treepiece.training.examples import Example, make_examples
from treepiece.training.fingerprints import fingerprint, skeleton_digest
from treepiece.training.log import FILE_NAME as LOG
from treepiece.training.loop import Loop, Places
from treepiece.training.objectives import make_objective
from treepiece.training.observer import Observer
from treepiece.training.preparation import Data, inherit, make_ready, new_model, training_examples
from treepiece.training.recipe import Recipe

RUN = "run"
_PLAN = "plan.json"
_START = "start"
_LAST = "last.safetensors"


@dataclass(frozen=True)
class Result:
    """How a run ended: whether it came to its end, and the best validation EM and its epoch."""

    is_complete: bool
    em: float
    epoch: int


def begin(folder: Path, data: Data, recipe: Recipe, *, init: str | Path | None, observer: Observer) -> None:
    """Prepare a run in a folder that has none: train the tokenizer, build the model, write both down."""
    if is_begun(folder) or (folder / MANIFEST).exists():
        raise CheckpointError(
            f"{folder}: there is a training run already: go on with --resume, or choose another --output"
        )
    if folder.is_dir() and {path.name for path in folder.iterdir()} - {RUN, LOG}:
        raise CheckpointError(f"{folder}: this folder has other files in it: choose a new one as --output")
    try:
        # Before any work is done; what is there was left by a run that was killed while it began.
        shutil.rmtree(folder / RUN, ignore_errors=True)
        (folder / RUN).mkdir(parents=True)
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be written: {error.strerror}; choose another --output") from None
    start = load_model(init) if init is not None else None
    if start is not None:
        recipe = inherit(recipe, start)
    trained = new_model(data.train, recipe, observer, start)
    trained.facts = _facts(data, recipe, {} if start is None else start.facts)
    save_model(folder / RUN / _START, trained)
    plan = {"recipe": write_config(recipe), "data": fingerprint(data.train), "validation": fingerprint(data.validation)}
    try:
        replace_files(folder / RUN, {_PLAN: json.dumps(plan).encode()})  # the last: from now on the run is begun
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be written: {error.strerror}") from None


def _facts(data: Data, recipe: Recipe, start: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is to be known of a run: its own facts, and those of the runs before it, given the facts of these."""
    own = {"recipe": write_config(recipe), "rows": len(data.train)}
    skeletons = {skeleton_digest(row.skeleton) for row in data.train} | set(start.get("skeletons", ()))
    before = {name: value for name, value in start.items() if name not in ("skeletons", "before")}
    runs = [*start.get("before", ()), before] if before else []
    return own | {"skeletons": sorted(skeletons)} | ({"before": runs} if runs else {})


def begin_together(
    fabric: Fabric, folder: Path, data: Data, recipe: Recipe, *, init: str | Path | None, observer: Observer
) -> None:
    """Prepare a run in the first of the processes, and fail in all of them if it fails there: none is left waiting."""
    problem = None
    if fabric.is_global_zero:
        try:
            begin(folder, data, recipe, init=init, observer=observer)
        except TreepieceError as error:
            problem = str(error)
    problem = fabric.broadcast(problem)
    if problem is not None:
        raise CheckpointError(problem)


def is_begun(folder: Path) -> bool:
    """Return whether a folder has a run that can be gone on with."""
    return (folder / RUN / _PLAN).is_file()


def is_finished(folder: Path) -> bool:
    """Return whether a folder has a model whose training has come to its end."""
    return (folder / MANIFEST).is_file() and not is_begun(folder)


def planned_recipe(folder: Path) -> Recipe:
    """Return the recipe of the run in a folder."""
    return read_config(Recipe, _plan(folder)["recipe"])


def go_on(
    folder: Path,
    data: Data,
    *,
    observer: Observer,
    should_stop: Callable[[], bool] = lambda: False,
    fabric: Fabric | None = None,
) -> Result:
    """Train from the last checkpoint of a run, or from its beginning, to its end or until `should_stop` says so."""
    plan = _plan(folder)
    for name, rows in (("data", data.train), ("validation", data.validation)):
        if plan[name] != fingerprint(rows):
            raise CheckpointError(
                f"{folder}: the run began with other {name} rows: give the same data, or begin a new run elsewhere"
            )
    fabric = fabric or make_fabric()
    last = folder / RUN / _LAST
    try:
        loop, lengths, validation = _prepare(folder, data, read_config(Recipe, plan["recipe"]), fabric, observer)
    except TreepieceError:
        if fabric.is_global_zero and not last.exists():
            shutil.rmtree(folder / RUN)  # nothing is lost, and the folder can be used with other data
        raise
    if last.is_file():
        loop.resume()
        observer.remark(f"going on after step {loop.position.step:,}, in epoch {loop.position.epoch + 1}")
    is_complete = loop.fit(lengths, validation, should_stop)
    if is_complete and fabric.is_global_zero:
        (folder / RUN / _PLAN).unlink()  # the first: without it there is no run, however much of the rest is there
        shutil.rmtree(folder / RUN)
    return Result(is_complete, loop.position.best_em, loop.position.best_epoch)


def _prepare(
    folder: Path, data: Data, recipe: Recipe, fabric: Fabric, observer: Observer
) -> tuple[Loop, list[int], list[Example]]:
    """Return the loop at its beginning, the lengths of the rows to learn from, and the rows to validate with."""
    trained = load_model(folder / RUN / _START)
    make_ready(trained.model, recipe)
    examples = training_examples(data.train, trained, observer)
    validation, left_out = make_examples(data.validation, trained.subwords)
    if left_out:
        observer.remark(f"left out {len(left_out):,} of {len(data.validation):,} validation rows")
    if not validation:
        raise DataError("no row is left to validate with: give others, or set a larger holdout")
    if min(recipe.batch, len(examples)) < fabric.world_size:
        raise RecipeError(
            f"{fabric.world_size} processes need batches of as many rows: the batch is {recipe.batch}, "
            f"there are {len(examples)} rows"
        )
    objective = make_objective(trained, examples, recipe)
    loop = Loop(fabric, objective, trained, recipe, Places(folder, folder / RUN / _LAST), observer)
    return loop, [len(example.subwords.ids) for example in examples], validation


def make_fabric() -> Fabric:
    """Return one process on the best device there is, or as many as `torchrun` has started."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return Fabric(accelerator="auto", devices=1)
    local, world = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    fabric = Fabric(accelerator="auto", strategy="ddp", devices=local, num_nodes=world // local)
    fabric.launch()
    return fabric


def leave(fabric: Fabric) -> None:
    """End the connection of several processes in all of them at once: one that left early would abort the others."""
    if fabric.world_size > 1:
        fabric.barrier()
        torch.distributed.destroy_process_group()


def _plan(folder: Path) -> dict[str, Any]:
    try:
        plan = json.loads((folder / RUN / _PLAN).read_bytes())
        _ = plan["recipe"], plan["data"], plan["validation"]
    except FileNotFoundError:
        if is_finished(folder):
            raise CheckpointError(
                f"{folder}: its training has come to its end; to train it further use --init with another --output"
            ) from None
        raise CheckpointError(f"{folder}: there is no training run to go on with: leave --resume out") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder}: the run's {_PLAN} is damaged ({error}): begin a new run elsewhere") from None
    return dict(plan)
