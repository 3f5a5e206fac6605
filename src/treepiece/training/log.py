"""The course of a run as a CSV file, for spreadsheets and plots."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from treepiece.errors import CheckpointError
from treepiece.files import replace_files

FILE_NAME = "log.csv"
_COLUMNS = ("step", "epoch", "name", "value")


class CsvLog:
    """Appends rows of step, epoch, name and value; a run that goes on first drops what came after its checkpoint."""

    def __init__(self, folder: Path, step: int) -> None:
        self._path = folder / FILE_NAME
        kept = [row for row in self._rows() if int(row["step"]) <= step] if step else []
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, _COLUMNS)
        writer.writeheader()
        writer.writerows(kept)
        try:
            replace_files(folder, {FILE_NAME: text.getvalue().encode()})
        except OSError as error:
            raise CheckpointError(f"{self._path}: cannot be written: {error.strerror}") from error

    def write(self, step: int, epoch: int, values: Mapping[str, float]) -> None:
        """Append values by name."""
        with self._open("a") as file:
            csv.writer(file).writerows((step, epoch, name, f"{value:.6g}") for name, value in values.items())

    def _rows(self) -> list[dict[str, str]]:
        if not self._path.exists():
            return []
        with self._open("r") as file:
            whole = (row for row in csv.DictReader(file) if row.get("value"))  # the last line may be cut short
            return [row for row in whole if row["step"].isdecimal()]

    @contextmanager
    def _open(self, mode: str) -> Iterator[TextIO]:
        try:
            with self._path.open(mode, newline="", encoding="utf-8") as file:
                yield cast(TextIO, file)
        except OSError as error:
            raise CheckpointError(f"{self._path}: cannot be read or written: {error.strerror}") from error
