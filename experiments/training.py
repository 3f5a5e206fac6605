"""Models for the reproduction: trained here or taken from a folder, and exported.

Whatever is chosen or fitted, it is on rows that training holds out from the train split; the eval split is for scores
only.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from experiments.parts import Json
from experiments.topv2 import rows_of_split
from treepiece.bundle import MANIFEST, RUNTIME, TOKENIZER, TRAINING, WEIGHTS, read_bundle
from treepiece.data.rows import Row
from treepiece.errors import BundleError, OptionError, RecipeError
from treepiece.tokenizer.storage import FILE_NAME

NAMES = {"treepiece": "TreePiece", "ar": "autoregressive", "nar": "non-autoregressive"}
"""The three parsers, and how they are called in text."""
_SPLIT_SETTINGS = ("kind", "seed", "holdout", "max_held_out")


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


def train_in(
    folder: Path,
    rows: Sequence[Row],
    settings: Json,
    *,
    validation: Sequence[Row] | None = None,
    init: Path | None = None,
) -> Json:
    """Return the metadata of a trained model, after training it to the end from where an interruption left off.

    Ctrl-C saves the run and is then raised.
    """
    import treepiece
    from treepiece.cli.console import ProgressBars, stop_on_interrupt

    with ProgressBars() as bars, stop_on_interrupt() as should_stop:
        result = treepiece.train(
            rows,
            folder,
            recipe={**settings, "scope": False},  # no score depends on it
            validation=validation,
            init=init,
            resume=True,
            progress=bars,
            should_stop=should_stop,
        )
    if not result.is_complete:
        raise KeyboardInterrupt
    return {**metadata_of(folder), "rows_per_second": _read_speed(folder)}


def metadata_of(folder: Path) -> Json:
    """Return what a bundle says of its training, without the list of its skeletons, and a checksum of the bundle."""
    bundle = read_bundle(folder, check=False)
    metadata = bundle.read_json(TRAINING)
    return {
        "kind": bundle.kind,
        "recipe": metadata.get("recipe", {}),
        "rows": metadata.get("rows"),
        "validation": metadata.get("validation", {}),
        "before": metadata.get("before", []),
        "average": metadata.get("average"),
        **_sizes(folder),
        "manifest": manifest_digest(folder),
    }


def _sizes(folder: Path) -> Json:
    """Return the number of parameters of a model, if the folder has weights, and of its units, if it has any."""
    sizes: Json = {}
    weights, units = folder / WEIGHTS, folder / TOKENIZER / FILE_NAME
    if weights.is_file():
        from safetensors import safe_open

        with safe_open(weights, "numpy") as file:
            sizes["parameters"] = sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    if units.is_file():
        sizes["units"] = len(json.loads(units.read_bytes())["units"])
    return sizes


def manifest_digest(folder: Path) -> str:
    """Return a checksum of a bundle: its manifest has those of all its files."""
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def _read_speed(folder: Path) -> float | None:
    """Return the rows per second of the last epoch, which the log of a run has."""
    logs = sorted(folder.glob("log/*/metrics.csv"), key=lambda path: path.stat().st_mtime)
    for log in reversed(logs):
        with log.open(newline="", encoding="utf-8") as file:
            speeds = [row["rows_per_second"] for row in csv.DictReader(file) if row.get("rows_per_second")]
        if speeds:
            return float(speeds[-1])
    return None


@dataclass(frozen=True)
class Taken:
    """A trained model that is used instead of training one."""

    kind: str
    seed: int
    folder: Path


def take(choice: str) -> Taken:
    """Return the model that `KIND=FOLDER` names, after making sure that it is one of that kind."""
    kind, equals, name = choice.partition("=")
    if not equals or kind not in NAMES:
        raise OptionError(f"--take must be KIND=FOLDER with KIND one of {', '.join(NAMES)}, got {choice!r}")
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
    seed = metadata_of(folder)["recipe"].get("seed")
    if not isinstance(seed, int):
        raise BundleError(f"--take {choice}: the bundle does not say with which seed it was trained: train it again")
    return Taken(kind, seed, folder)


def exported(model: Path, folder: Path, topv2: Path) -> Json:
    """Return how the graphs in a folder compare with PyTorch, after writing them if they are not there."""
    if not (folder / MANIFEST).is_file():
        export(model, folder, held_out(model, topv2))
    metadata = read_bundle(folder, check=False).read_json(RUNTIME)
    return {"parity": metadata["parity"], "quality": metadata["quality"], "bundle": manifest_digest(folder)}


def held_out(model: Path, topv2: Path) -> Sequence[Row]:
    """Return the rows of the train split that a model was validated with, and not trained on."""
    from treepiece.training.preparation import hold_out
    from treepiece.training.recipe import make_recipe

    metadata = metadata_of(model)
    recipe = make_recipe({name: metadata["recipe"][name] for name in _SPLIT_SETTINGS if name in metadata["recipe"]})
    data = hold_out(rows_of_split(topv2, "train"), recipe)
    if metadata["rows"] != len(data.train):
        raise BundleError(
            f"{model}: it was trained on {metadata['rows']} rows, but its recipe leaves {len(data.train)} of the train "
            "split: which rows it has not seen cannot be told. Give a model that was trained on the train split of "
            "this folder, without --validation"
        )
    return data.validation


def export(model: Path, folder: Path, rows: Sequence[Row]) -> None:
    """Write the graphs of a model in both precisions, and its weights, so that PyTorch can be timed beside them."""
    from treepiece.cli.console import ProgressBars
    from treepiece.data.examples import make_examples
    from treepiece.export.exporter import ExportOptions, Weights, export_model
    from treepiece.models.trained import load_model

    before = manifest_digest(model)
    examples, _ = make_examples(rows, load_model(model).subwords)
    options = ExportOptions(weights=Weights.FLOAT, licence="TOPv2 (Chen et al., 2020), CC BY-SA 4.0")
    with ProgressBars() as bars:
        export_model(
            model,
            folder,
            examples,
            data="rows held out from TOPv2 train",
            calibration=[example.subwords for example in examples],
            options=options,
            progress=bars,
        )
    if manifest_digest(model) != before:
        (folder / MANIFEST).unlink()  # without it there is no bundle
        raise BundleError(f"{model}: the model changed while it was exported: wait until its training has ended")
