"""Rows with their answers as bytes: a part at a time, and all parts in one file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from treepiece.jobs.answers import Answer, add_answer
from treepiece.jobs.columns import Kind, as_text, with_answer, writable
from treepiece.jobs.job import OutputFormat
from treepiece.jobs.sources import Records, Source

_BLANKS = str.maketrans("\t\r\n", "   ")


class Sink(Protocol):
    """An output format."""

    def encode(self, records: Records, answers: Sequence[Answer]) -> bytes:
        """Return rows and their answers as a part."""

    def join(self, parts: Iterable[Path], file: BinaryIO) -> None:
        """Write the parts to one file."""


class JsonSink:
    """One JSON object a line, in ASCII: every text can be written, and no reader takes part of one for a line end."""

    def encode(self, records: Records, answers: Sequence[Answer]) -> bytes:
        """Return rows and their answers as a part."""
        rows = map(add_answer, records.rows, answers)
        return "".join(f"{json.dumps(row)}\n" for row in rows).encode("ascii")

    def join(self, parts: Iterable[Path], file: BinaryIO) -> None:
        """Write the parts to one file."""
        _concatenate(parts, file)


class TsvSink:
    """Columns separated by tabs, with a header; a tab or a line end in a value becomes a blank."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.names = list(columns)

    def encode(self, records: Records, answers: Sequence[Answer]) -> bytes:
        """Return rows and their answers as a part."""
        rows = map(add_answer, records.rows, answers)
        return b"".join(_line(as_text(row.get(name)) for name in self.names) for row in rows)

    def join(self, parts: Iterable[Path], file: BinaryIO) -> None:
        """Write the names of the columns and the parts to one file."""
        file.write(_line(self.names))
        _concatenate(parts, file)


def _line(cells: Iterable[str | None]) -> bytes:
    return (writable("\t".join((cell or "").translate(_BLANKS) for cell in cells)) + "\n").encode()


def _concatenate(parts: Iterable[Path], file: BinaryIO) -> None:
    for path in parts:
        with path.open("rb") as part:
            shutil.copyfileobj(part, file)


def open_sink(kind: OutputFormat, source: Source, columns: Mapping[str, Kind]) -> Sink:
    """Return what writes rows of a source; `columns` are those of the input."""
    match kind:
        case OutputFormat.JSONL:
            return JsonSink()
        case OutputFormat.TSV:
            return TsvSink(with_answer(columns))
        case OutputFormat.PARQUET:
            from treepiece.jobs.tables import ParquetSink, output_schema  # it needs pyarrow, the others do not

            return ParquetSink(output_schema(source, columns), columns)
