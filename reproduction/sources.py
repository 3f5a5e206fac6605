"""Where the models to be scored come from: trained here, or taken from a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reproduction.data import file_digest, rows_of_split, split_files
from reproduction.part import Job, Part
from reproduction.store import Json
from reproduction.training import facts_of, make_recipe, read_settings, train_in
from treepiece.bundle import WEIGHTS, read_bundle
from treepiece.errors import BundleError, OptionError

KINDS = {"treepiece": "TreePiece", "ar": "autoregressive", "nar": "non-autoregressive"}
"""The three parsers, and how they are called in text."""


@dataclass(frozen=True)
class Taken:
    """A trained bundle that is used instead of training one."""

    kind: str
    seed: int
    folder: Path


def take(choice: str) -> Taken:
    """Return the bundle that `KIND=FOLDER` names, after making sure that it is one of that kind."""
    kind, equals, name = choice.partition("=")
    if not equals or kind not in KINDS:
        raise OptionError(f"--take must be KIND=FOLDER with KIND one of {', '.join(KINDS)}, got {choice!r}")
    folder = Path(name)
    bundle = read_bundle(folder, check=False)
    if bundle.kind != kind:
        raise BundleError(
            f"--take {choice}: the folder has a model of the kind {bundle.kind}, expected {kind}: "
            f"give --take {bundle.kind}={name}, or the folder of another model"
        )
    if WEIGHTS not in bundle.files:
        raise BundleError(
            f"--take {choice}: the folder has no {WEIGHTS}: give a folder that `treepiece train` wrote, "
            "not one that was exported"
        )
    seed = facts_of(folder)["recipe"].get("seed")
    if not isinstance(seed, int):
        raise BundleError(f"--take {choice}: the bundle does not say with which seed it was trained: train it again")
    return Taken(kind, seed, folder)


def train_name(kind: str, seed: int) -> str:
    """Return the name of the part that trains a model."""
    return f"train-{kind}-{seed}"


def train_part(kind: str, seed: int, topv2: Path, recipes: Path) -> Part:
    """Return the part that trains a model on the train split, and selects its best epoch on rows held out from it."""
    settings = read_settings(recipes / f"topv2-minilm-{kind}.yaml", {"seed": seed})

    def work(job: Job) -> Json:
        from treepiece.training.preparation import hold_out

        recipe = make_recipe(settings)
        data = hold_out(rows_of_split(topv2, "train"), recipe)
        return {"seed": seed, "taken": False, **train_in(job.model_folder(), data, recipe)}

    return Part(
        train_name(kind, seed),
        f"train the {KINDS[kind]} parser on TOPv2, seed {seed}",
        {"recipe": settings, "data": file_digest(topv2, split_files("train"))},
        work,
        keeps=True,
    )


def taken_part(taken: Taken) -> Part:
    """Return the part that takes a trained model as it is."""
    facts = facts_of(taken.folder)

    def work(_: Job) -> Json:
        return {"seed": taken.seed, "taken": True, "finished": _is_finished(taken.folder), **facts}

    return Part(
        train_name(taken.kind, taken.seed),
        f"take the {KINDS[taken.kind]} parser of seed {taken.seed} as it was trained",
        {"taken": facts["manifest"]},
        work,
        keeps=True,
    )


def _is_finished(folder: Path) -> bool:
    """Return whether a model's training has come to its end: without PyTorch, which `training.run` would load."""
    return not (folder / "run" / "plan.json").is_file()


def model_of(job: Job, kind: str, seed: int, taken: Taken | None) -> Path:
    """Return the folder of the model that a job needs."""
    return job.needed_model(train_name(kind, seed)) if taken is None else taken.folder
