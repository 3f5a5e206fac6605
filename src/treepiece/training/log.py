"""The course of a run as a CSV file, for spreadsheets and plots."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

FILE_NAME = "log.csv"
_COLUMNS = ("step", "epoch", "name", "value")


class CsvLog:
    """Appends rows of step, epoch, name and value; a run that goes on first drops what came after its checkpoint."""

    def __init__(self, folder: Path, step: int) -> None:
        self._path = folder / FILE_NAME
        kept = [row for row in self._rows() if int(row["step"]) <= step] if step else []
        with self._path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, _COLUMNS)
            writer.writeheader()
            writer.writerows(kept)

    def _rows(self) -> list[dict[str, str]]:
        try:
            with self._path.open(newline="", encoding="utf-8") as file:
                whole = (row for row in csv.DictReader(file) if row["value"])  # the last line may be cut short
                return [row for row in whole if row["step"].isdecimal()]
        except FileNotFoundError:
            return []

    def write(self, step: int, epoch: int, values: Mapping[str, float]) -> None:
        """Append values by name."""
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows((step, epoch, name, f"{value:.6g}") for name, value in values.items())
