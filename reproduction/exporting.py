"""Graphs of a trained model, checked and calibrated on rows that are neither training's nor the eval split's.

The eval split is for scores only. What an export needs rows for, it does with those that the training held out from the
train split to choose the best epoch with.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reproduction.data import rows_of_split
from reproduction.store import Json
from reproduction.training import facts_of, make_recipe, manifest_digest
from treepiece.bundle import MANIFEST, RUNTIME, read_bundle
from treepiece.data.rows import Row
from treepiece.errors import BundleError

if TYPE_CHECKING:
    from treepiece.cli.watching import Watcher

_SPLIT_SETTINGS = ("seed", "holdout", "most_held_out")


def exported(model: Path, folder: Path, topv2: Path) -> Json:
    """Return how the graphs in a folder compare with PyTorch, after writing them if they are not there."""
    if not (folder / MANIFEST).is_file():
        export(model, folder, held_out(model, topv2))
    facts = read_bundle(folder, check=False).read_json(RUNTIME)
    return {"parity": facts["parity"], "quality": facts["quality"], "bundle": manifest_digest(folder)}


def held_out(model: Path, topv2: Path) -> Sequence[Row]:
    """Return the rows of the train split that a model was validated with, and not trained on."""
    from treepiece.training.preparation import hold_out

    facts = facts_of(model)
    recipe = make_recipe({name: facts["recipe"][name] for name in _SPLIT_SETTINGS if name in facts["recipe"]})
    data = hold_out(rows_of_split(topv2, "train"), recipe)
    if facts["rows"] != len(data.train):
        raise BundleError(
            f"{model}: it was trained on {facts['rows']} rows, but its recipe leaves {len(data.train)} of the train "
            "split: which rows it has not seen cannot be told. Give a model that was trained on the train split of "
            "this folder, without --validation"
        )
    return data.validation


def export(model: Path, folder: Path, rows: Sequence[Row]) -> None:
    """Write the graphs of a model in both precisions, and its weights, so that PyTorch can be timed beside them."""
    from treepiece.cli.watching import Watcher
    from treepiece.export.exporting import ExportOptions, export_model
    from treepiece.export.weights import Weights
    from treepiece.models.trained import load_model
    from treepiece.training.examples import make_examples

    before = manifest_digest(model)
    examples, _ = make_examples(rows, load_model(model).subwords)
    with Watcher(is_shown=True) as watcher:
        options = ExportOptions(weights=Weights.FLOAT, licence="TOPv2 (Chen et al., 2020), CC BY-SA 4.0")
        export_model(model, folder, examples, _Stages(watcher), options, data="rows held out from TOPv2 train")
    if manifest_digest(model) != before:
        (folder / MANIFEST).unlink()  # without it there is no bundle
        raise BundleError(f"{model}: the model changed while it was exported: wait until its training has ended")


class _Stages:
    """Shows the stages of an export with the bars of a training."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._stage = ("", 0)

    def on_stage(self, name: str, total: int) -> None:
        """A stage begins."""
        self._stage = name, total
        self._watcher.stage(name, 0, total)

    def on_step(self, done: int) -> None:
        """So many steps of the stage are done."""
        self._watcher.stage(self._stage[0], done, self._stage[1])
