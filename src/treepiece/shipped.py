"""The model that comes with treepiece, and the word that stands for it.

Wherever a model is asked for, a text names a folder, but for one word:

    bundled      to parse with: the graphs in src/treepiece/bundled, which every installation has
                 to train from: the weights in checkpoints/topv2-minilm, which a clone of the repository has; they are
                 twice as large as the graphs, and most people never train
    ./bundled    a folder of the user's that is called so

A `Path` is always a folder, because `Path("./bundled")` and `Path("bundled")` are the same:

>>> find_graphs("models/mine").as_posix()
'models/mine'
>>> find_graphs("./bundled").as_posix(), find_weights(Path("bundled")).as_posix()
('bundled', 'bundled')
"""

from __future__ import annotations

from pathlib import Path

from treepiece.bundle import MANIFEST
from treepiece.errors import BundleError

BUNDLED = "bundled"
"""The word."""
GRAPHS_FOLDER = Path(__file__).parent / "bundled"
WEIGHTS_FOLDER = Path(__file__).parents[2] / "checkpoints" / "topv2-minilm"
"""Where a clone of the repository has the weights; in an installation from a wheel there is nothing there."""


def find_graphs(model: str | Path) -> Path:
    """Return the folder of a model to parse with."""
    return _find(
        model,
        GRAPHS_FOLDER,
        "this installation has no model in it",
        "train one with `treepiece train`, make it ready with `treepiece export`, and give its folder",
    )


def find_weights(model: str | Path) -> Path:
    """Return the folder of a model to train from, or to export."""
    return _find(
        model,
        WEIGHTS_FOLDER,
        "this installation has no weights to train from, a wheel holds graphs only",
        "clone the repository, which has them in checkpoints/topv2-minilm, and install it with `pip install -e .`, "
        "or give a folder that `treepiece train` wrote",
    )


def _find(model: str | Path, shipped: Path, fault: str, remedy: str) -> Path:
    if model != BUNDLED:
        return Path(model)
    if (shipped / MANIFEST).is_file():
        return shipped
    own = f"; the folder {BUNDLED} that is here is ./{BUNDLED}" if Path(BUNDLED).is_dir() else ""
    raise BundleError(f"{BUNDLED}: {fault} (looked for {shipped / MANIFEST}): {remedy}{own}")
