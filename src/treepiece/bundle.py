"""A bundle: the folder that a model is kept in.

    manifest.json         what this is, and the checksum of every other file
    config.json           the kind of the model, its sizes, its labels
    training.json         recipe, data and scores of the training
    subwords.json         the encoder's subword tokenizer, in the format of Hugging Face
    tokenizer/            the tree tokenizer (TreePiece only)
    weights.safetensors   the weights in PyTorch's names, in single or half precision; graphs do without
    onnx/                 graphs for the runtime, in single precision and in int8
    runtime.json          what was measured when the graphs were made
    README.md             the model card

There is no pickle in it. What is read has the checksum that was written, or an error says which file differs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treepiece.errors import BundleError
from treepiece.files import replace_files

FORMAT = "treepiece.bundle"
VERSION = 1
MANIFEST = "manifest.json"
CONFIG = "config.json"
TRAINING = "training.json"
SUBWORDS = "subwords.json"
TOKENIZER = "tokenizer"
WEIGHTS = "weights.safetensors"
RUNTIME = "runtime.json"
CARD = "README.md"


@dataclass(frozen=True)
class Bundle:
    """A folder whose manifest has been read; what is read from it is as the manifest says."""

    folder: Path
    kind: str
    files: Mapping[str, str]

    def read(self, name: str) -> bytes:
        """Return the contents of a file; raise if they are not what was written."""
        if name not in self.files:
            raise BundleError(f"{self.folder}: the bundle has no {name}: it holds {', '.join(sorted(self.files))}")
        data = _read(self.folder / name)
        if hashlib.sha256(data).hexdigest() != self.files[name]:
            raise _damaged(self.folder / name)
        return data

    def check_folder(self, name: str) -> None:
        """Raise if a file below a folder of the bundle is not what was written."""
        for file in self.files:
            if file.startswith(f"{name}/"):
                self.read(file)

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the JSON object in a file."""
        return _object(self.read(name), self.folder / name)


def write_bundle(folder: Path, kind: str, files: Mapping[str, bytes]) -> None:
    """Write files and the manifest that lists them; where that fails, a bundle that was there before is unchanged.

    The files change places one after the other, in an instant, when all of them are on the disk. Someone who reads
    in that instant is told by the checksums.
    """
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    manifest = {"format": FORMAT, "version": VERSION, "kind": kind, "files": digests}
    try:
        replace_files(folder, {**files, MANIFEST: json.dumps(manifest, indent=1).encode()})
    except OSError as error:
        raise BundleError(f"{folder}: cannot be written: {error.strerror}; a bundle there is unchanged") from error


def read_bundle(folder: str | Path, *, check: bool = True) -> Bundle:
    """Return a bundle after checking its manifest and, unless that is left to reading, the checksum of each file."""
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
    if version > VERSION:
        raise BundleError(
            f"{path}: format version {version} is newer than this treepiece reads ({VERSION}): upgrade treepiece"
        )
    for name, digest in files.items():
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise BundleError(f"{path}: the file {name!r:.60} is outside of the bundle")
        if check and _digest(folder / name) != digest:
            raise _damaged(folder / name)
    return Bundle(folder, kind, files)


def _damaged(path: Path) -> BundleError:
    return BundleError(f"{path}: damaged: its checksum does not match; copy or train the model again")


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise BundleError(f"{path}: missing: copy or train the model again") from None


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
