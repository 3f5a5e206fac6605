"""Training inside a part: a run that was interrupted goes on, one that has ended is taken as it is."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from reproduction.store import Json
from treepiece.bundle import MANIFEST, TRAINING, read_bundle
from treepiece.errors import RecipeError

if TYPE_CHECKING:
    from treepiece.training.preparation import Data
    from treepiece.training.recipe import Recipe

_LOG = "log.csv"


def read_settings(file: Path, changes: Mapping[str, Any]) -> Json:
    """Return what a recipe file says, with changes: enough for a fingerprint, and PyTorch need not be loaded."""
    try:
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecipeError(f"{file}: the recipe cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecipeError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(settings, dict):
        raise RecipeError(f"{file}: expected settings by name, got {settings!r:.60}")
    return {**settings, **changes}


def make_recipe(settings: Json) -> Recipe:
    """Return the recipe of settings."""
    from treepiece.training.configs import read_config
    from treepiece.training.recipe import Recipe

    return read_config(Recipe, settings)


def train_in(folder: Path, data: Data, recipe: Recipe, *, init: Path | None = None) -> Json:
    """Train to the end, from where an interruption left off, and return what is known of the model then.

    Ctrl-C saves the run and then is raised as ever.
    """
    from treepiece.cli.interrupts import stop_on_interrupt
    from treepiece.cli.watching import Watcher
    from treepiece.training import run

    if not run.is_finished(folder):
        with Watcher(is_shown=True) as watcher, stop_on_interrupt() as should_stop:
            if not run.is_begun(folder):
                run.begin(folder, data, recipe, init=init, observer=watcher)
            if not run.go_on(folder, data, observer=watcher, should_stop=should_stop).is_complete:
                raise KeyboardInterrupt
    return {**facts_of(folder), "last_epoch": read_last_epoch(folder), "finished": True}


def facts_of(folder: Path) -> Json:
    """Return what a bundle says of its training, without the list of its skeletons, and a checksum of the bundle."""
    bundle = read_bundle(folder, check=False)
    facts = bundle.read_json(TRAINING)
    return {
        "kind": bundle.kind,
        "recipe": facts.get("recipe", {}),
        "rows": facts.get("rows"),
        "validation": facts.get("validation", {}),
        "before": facts.get("before", []),
        "mixed": facts.get("mixed"),
        "manifest": manifest_digest(folder),
    }


def manifest_digest(folder: Path) -> str:
    """Return a checksum of a bundle: its manifest has those of all its files."""
    import hashlib

    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def read_last_epoch(folder: Path) -> dict[str, float]:
    """Return what the log of a run has of its last epoch: `validation_em`, `validation_em_s`, `rows_per_second`."""
    with (folder / _LOG).open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["name"].startswith(("validation", "rows_per_second"))]
    return {row["name"]: float(row["value"]) for row in rows}  # later rows replace earlier ones
