"""What the parts have found out, on disk: one JSON file a part, which is whole or not there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from treepiece.errors import DataError
from treepiece.files import replace_files

Json = dict[str, Any]

_PARTS = "parts"
_FILES = "files"


def digest(value: object) -> str:
    """Return a checksum of a value that JSON can write, which does not depend on the order of its keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Record:
    """A part that is done: what it was made from, on which machine, in how many seconds, and what came out.

    `needs` has the checksum of the result of every part that it went out from, so that it can be told from the files
    alone whether two results belong together. `fingerprint` is the checksum of `inputs` and `needs`.
    """

    part: str
    fingerprint: str
    inputs: Json
    needs: dict[str, str]
    machine: Json
    seconds: float
    result: Json


class Store:
    """The folder of a reproduction: PARTS/NAME.json for what is done, FILES/NAME-.../ for what parts work with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> Record | None:
        """Return what a part has found out; None if it is not done."""
        path = self._path(name)
        try:
            value = json.loads(path.read_bytes())
            return Record(**{field.name: value[field.name] for field in fields(Record)})
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            raise DataError(
                f"{path}: not a result of this program: delete the file, and the part is done again"
            ) from None

    def write(self, record: Record) -> None:
        """Keep what a part has found out; what was there before is replaced at once or not at all."""
        data = json.dumps(asdict(record), indent=1).encode()
        try:
            replace_files(self.folder / _PARTS, {f"{record.part}.json": data})
        except OSError as error:
            raise DataError(f"{self._path(record.part)}: cannot be written: {error.strerror}") from None

    def names(self) -> list[str]:
        """Return the names of the parts that are done."""
        return sorted(path.stem for path in (self.folder / _PARTS).glob("*.json") if not path.name.startswith("."))

    def files(self, name: str, fingerprint: str) -> Path:
        """Return the folder that a part works in. It is another one where the part is made from something else."""
        return self.folder / _FILES / f"{name}-{fingerprint[:8]}"

    def _path(self, name: str) -> Path:
        return self.folder / _PARTS / f"{name}.json"


def needs_of(records: Mapping[str, Record]) -> dict[str, str]:
    """Return the checksums of results, by the names of their parts."""
    return {name: digest(record.result) for name, record in records.items()}
