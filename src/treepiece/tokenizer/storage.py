"""Saving and loading of tokenizers.

`tokenizer.json` holds the vocabulary and the training report, with a format version and a checksum. `units.txt` lists
the units for people to read and is never loaded.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from treepiece.bundle import replace_files
from treepiece.errors import TokenizerFileError
from treepiece.tokenizer.folding import CONTINUATION, folds_properly
from treepiece.tokenizer.learning import Merge, TrainingReport
from treepiece.tokenizer.shape import is_fragment
from treepiece.tokenizer.vocabulary import Vocabulary

FORMAT = "treepiece.tokenizer"
VERSION = 1
FILE_NAME = "tokenizer.json"
TEXT_NAME = "units.txt"


def save_vocabulary(folder: Path, vocabulary: Vocabulary, report: TrainingReport | None) -> None:
    """Write a vocabulary; a previous one stays intact until the new one is complete."""
    try:
        replace_files(folder, vocabulary_files(vocabulary, report))
    except OSError as error:
        raise TokenizerFileError(
            f"{folder}: cannot be written: {error.strerror}; an existing tokenizer there is unchanged"
        ) from error


def vocabulary_files(vocabulary: Vocabulary, report: TrainingReport | None) -> dict[str, bytes]:
    """Return the files of a vocabulary by name, `tokenizer.json` last."""
    body = {
        "labels": vocabulary.labels,
        "units": [[log_p, *shape] for shape, log_p in zip(vocabulary.shapes, vocabulary.log_p, strict=True)],
        "report": asdict(report) if report else None,
    }
    head = {"format": FORMAT, "version": VERSION, "sha256": _digest(body)}
    # json escapes non-ASCII labels, so a lone surrogate survives; in units.txt it becomes a question mark.
    text = "".join(f"{unit.probability:.3e}\t{unit}\n" for unit in vocabulary)
    return {TEXT_NAME: text.encode("utf-8", errors="replace"), FILE_NAME: json.dumps({**head, **body}).encode()}


def load_vocabulary(folder: Path) -> tuple[Vocabulary, TrainingReport | None]:
    """Return the vocabulary and the report in a folder; raise if they are missing, damaged or of a newer format."""
    path = folder if folder.name == FILE_NAME else folder / FILE_NAME
    value = _read(path)
    if value.get("format") != FORMAT:
        raise TokenizerFileError(f"{path}: not a tokenizer: 'format' is {value.get('format')!r}, expected {FORMAT!r}")
    version = value.get("version")
    if type(version) is not int or version < 1:
        raise _damaged(path, f"'version' is {version!r}")
    if version > VERSION:
        raise TokenizerFileError(
            f"{path}: format version {version} is newer than this treepiece reads ({VERSION}): upgrade treepiece"
        )
    body = {key: value.get(key) for key in ("labels", "units", "report")}
    if value.get("sha256") != _digest(body):
        raise _damaged(path, "its checksum does not match")
    return _vocabulary(body, path), _report(body["report"], path)


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise TokenizerFileError(
            f"{path}: no such file: pass the folder that `treepiece tokenizer train --output` wrote"
        ) from None
    except OSError as error:
        raise TokenizerFileError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise _damaged(path, "it is not JSON") from None
    if not isinstance(value, dict):
        raise TokenizerFileError(f"{path}: not a tokenizer: expected a JSON object")
    return value


def _damaged(path: Path, reason: str) -> TokenizerFileError:
    return TokenizerFileError(f"{path}: damaged: {reason}; train or copy the tokenizer again")


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _vocabulary(body: dict[str, Any], path: Path) -> Vocabulary:
    """Return the vocabulary of a file; its checksum is right, but another program may have written it."""
    labels, units = body["labels"], body["units"]
    if not _is_list_of(str, labels) or len(set(labels)) < len(labels) or labels[-1:] != [CONTINUATION]:
        raise TokenizerFileError(f"{path}: 'labels' must be distinct strings, the last {CONTINUATION!r}")
    for index, unit in enumerate(units if isinstance(units, list) else [None]):
        if not (
            isinstance(unit, list)
            and isinstance(unit[0] if unit else None, float)
            and math.isfinite(unit[0])
            and _is_list_of(int, unit[1:])
            and is_fragment(unit[1:], len(labels))
        ):
            raise TokenizerFileError(
                f"{path}: unit {index} must be a number and the tokens of a tree, got {unit!r:.60}"
            )
    shapes = tuple(tuple(unit[1:]) for unit in units)
    if not shapes or len(set(shapes)) < len(shapes):
        raise TokenizerFileError(f"{path}: 'units' must be a non-empty list of distinct units")
    vocabulary = Vocabulary(tuple(labels), shapes, tuple(unit[0] for unit in units))
    continuation = vocabulary.widths.continuation
    if vocabulary.widths.most[continuation] < 2 or not all(folds_properly(shape, continuation) for shape in shapes):
        raise TokenizerFileError(f"{path}: {CONTINUATION} must have a unit, and at least two children in every unit")
    return vocabulary


def _report(value: object, path: Path) -> TrainingReport | None:
    if value is None:
        return None
    names = {field.name for field in fields(TrainingReport)}
    if isinstance(value, dict) and value.keys() | {"merges"} == names:  # tokenizers may be saved without merges
        objectives, merges = value["em_objectives"], value.get("merges", [])
        if isinstance(objectives, list) and isinstance(merges, list) and all(_is_merge(merge) for merge in merges):
            lists = {"em_objectives": tuple(objectives), "merges": tuple(Merge(*merge) for merge in merges)}
            return TrainingReport(**value | lists)
    raise TokenizerFileError(f"{path}: 'report' is not that of a training run: {value!r:.60}")


def _is_merge(value: object) -> bool:
    return isinstance(value, list) and [type(item) for item in value] == [str, int]


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(type(item) is kind for item in value)
