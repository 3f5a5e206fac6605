"""A bundle: the folder of a model.

    manifest.json         the format, and the checksum of every other file
    config.json           the kind of the model, its sizes, its labels
    decoding.json         the settings of decoding
    training.json         recipe, data and scores of the training
    subwords.json         the encoder's subword tokenizer, in the format of Hugging Face
    scope.json            the classifier of texts that are out of scope; older bundles and the baselines have none
    dictionary.json       the words of the training rows, for spelling correction; older bundles have none
    tokenizer/            the tree tokenizer (TreePiece only)
    weights.safetensors   the weights by their names in PyTorch, in single or half precision; not needed for graphs
    onnx/                 graphs for the runtime, in single precision and in int8
    runtime.json          the measurements of the export
    README.md             the model card

No file uses pickle. The manifest has a checksum of every other file, the model card and training.json too. Opening a
bundle checks all of them except weights and graphs, which are checked when they are read.

Wherever a model is given as a string, it is a folder, except for one word:

    bundled      to parse with: the graphs in src/treepiece/bundled, which every installation has
                 to train from: the weights in checkpoints/topv2-minilm, which a clone of the repository has; they are
                 twice as large as the graphs, and most people never train
    ./bundled    a folder of the user's with that name

A `Path` is always a folder, because `Path("./bundled")` and `Path("bundled")` are the same:

>>> find_graphs("models/mine").as_posix()
'models/mine'
>>> find_graphs("./bundled").as_posix(), find_weights(Path("bundled")).as_posix()
('bundled', 'bundled')
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treepiece.errors import BundleError

FORMAT = "treepiece.bundle"
VERSION = 2
MANIFEST = "manifest.json"
CONFIG = "config.json"
DECODING = "decoding.json"
TRAINING = "training.json"
SUBWORDS = "subwords.json"
DICTIONARY = "dictionary.json"
SCOPE = "scope.json"
TOKENIZER = "tokenizer"
WEIGHTS = "weights.safetensors"
RUNTIME = "runtime.json"
CARD = "README.md"


@dataclass(frozen=True)
class Bundle:
    """A folder whose manifest has been read; each file is checked against it."""

    folder: Path
    kind: str
    files: Mapping[str, str]

    def read(self, name: str) -> bytes:
        """Return the contents of a file; raise if its checksum is wrong."""
        if name not in self.files:
            raise BundleError(f"{self.folder}: the bundle has no {name}: it holds {', '.join(sorted(self.files))}")
        path = self.folder / name
        data = _read(path)
        if hashlib.sha256(data).hexdigest() != self.files[name]:
            raise BundleError(f"{path}: damaged: its checksum does not match; copy or train the model again")
        return data

    def check(self, *, except_for: tuple[str, ...] = ()) -> None:
        """Raise if a checksum is wrong; files whose names begin with one of `except_for` are left out."""
        for name in self.files:
            if not name.startswith(except_for):
                self.read(name)

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the JSON object in a file."""
        return _object(self.read(name), self.folder / name)


def replace_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files so that each is either the old one or the new one; the last is replaced only after all others.

    Nothing is replaced before everything is on the disk, so a full disk destroys no existing file.
    """
    # Drafts have fixed names: those of a killed process are overwritten the next time.
    drafts = {folder / name: (folder / name).with_name(f".{Path(name).name}.draft") for name in files}
    try:
        for (path, draft), data in zip(drafts.items(), files.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for path, draft in drafts.items():
            os.replace(draft, path)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)


def write_bundle(folder: Path, kind: str, files: Mapping[str, bytes]) -> None:
    """Write files and the manifest that lists them; if that fails, an existing bundle is unchanged.

    The files are replaced one after the other, as soon as all of them are on the disk. The checksums reveal a bundle
    that is read in between.
    """
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    manifest = {"format": FORMAT, "version": VERSION, "kind": kind, "files": digests}
    try:
        replace_files(folder, {**files, MANIFEST: json.dumps(manifest, indent=1).encode()})
    except OSError as error:
        raise BundleError(f"{folder}: cannot be written: {error.strerror}; a bundle there is unchanged") from error


def read_bundle(folder: str | Path, *, check: bool = True) -> Bundle:
    """Return a bundle after checking its manifest and, unless they are checked when read, the checksum of each file."""
    folder = Path(folder)
    path = folder / MANIFEST
    if not path.is_file():
        found = f"not a bundle, it has no {MANIFEST}" if folder.exists() else "no such folder"
        raise BundleError(f"{folder}: {found}: give one that `treepiece train` or `treepiece export` wrote")
    manifest = _object(_read(path), path)
    if manifest.get("format") != FORMAT:
        raise BundleError(f"{path}: 'format' is {manifest.get('format')!r:.60}, expected {FORMAT!r}")
    version, kind, files = manifest.get("version"), manifest.get("kind"), manifest.get("files")
    if type(version) is not int or not isinstance(kind, str) or not isinstance(files, dict):
        raise BundleError(f"{path}: damaged: 'version', 'kind' and 'files' are missing; copy or train the model again")
    if version < VERSION:
        raise BundleError(
            f"{path}: format version {version} is older than this treepiece reads ({VERSION}): export the model again "
            "with `treepiece export --model DIR --output BUNDLE`, or train it again where DIR is that old too"
        )
    if version > VERSION:
        raise BundleError(
            f"{path}: format version {version} is newer than this treepiece reads ({VERSION}): upgrade treepiece"
        )
    for name in files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise BundleError(f"{path}: the file {name!r:.60} is outside of the bundle")
    bundle = Bundle(folder, kind, files)
    if check:
        bundle.check()
    return bundle


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BundleError(f"{path}: missing: copy or train the model again") from None
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from None


def _object(data: bytes, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise BundleError(f"{path}: damaged: it is not JSON; copy or train the model again") from None
    if not isinstance(value, dict):
        raise BundleError(f"{path}: damaged: expected a JSON object")
    return value


BUNDLED = "bundled"
"""The name of the model that comes with treepiece."""
GRAPHS_FOLDER = Path(__file__).parent / "bundled"
WEIGHTS_FOLDER = Path(__file__).parents[2] / "checkpoints" / "topv2-minilm"
"""The folder of the weights in a clone of the repository; an installation from a wheel does not have it."""


def find_graphs(model: str | Path) -> Path:
    """Return the folder of a model to parse with."""
    return _find(
        model,
        GRAPHS_FOLDER,
        "this installation has no model in it",
        "train one with `treepiece train`, export it with `treepiece export`, and give its folder",
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


def _find(model: str | Path, own: Path, fault: str, remedy: str) -> Path:
    if model != BUNDLED:
        return Path(model)
    if (own / MANIFEST).is_file():
        return own
    hint = f"; the folder {BUNDLED} that is here is ./{BUNDLED}" if Path(BUNDLED).is_dir() else ""
    raise BundleError(f"{BUNDLED}: {fault} (looked for {own / MANIFEST}): {remedy}{hint}")
