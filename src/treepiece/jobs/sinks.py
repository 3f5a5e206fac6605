"""Output formats: they encode rows and predictions as parts, and join all parts to one file."""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from treepiece.jobs.columns import ColumnType, Prediction, add_prediction, as_text, encodable, output_columns
from treepiece.jobs.job import OutputFormat
from treepiece.jobs.sources import Records, Source

_BLANKS = str.maketrans("\t\r\n", "   ")


class Sink(ABC):
    """An output format."""

    header = b""

    @abstractmethod
    def encode(self, records: Records, predictions: Sequence[Prediction]) -> bytes:
        """Return rows and their predictions as a part."""

    def join(self, parts: Iterable[Path], file: BinaryIO) -> None:
        """Write the parts to one file."""
        file.write(self.header)
        for path in parts:
            with path.open("rb") as part:
                shutil.copyfileobj(part, file)


class JsonSink(Sink):
    """One JSON object per line, in ASCII: it can hold every text, and no reader finds line ends within one."""

    def encode(self, records: Records, predictions: Sequence[Prediction]) -> bytes:
        """Return rows and their predictions as a part."""
        rows = map(add_prediction, records.rows, predictions)
        return "".join(f"{json.dumps(row, allow_nan=False)}\n" for row in rows).encode("ascii")


class TsvSink(Sink):
    """Columns separated by tabs, with a header; a tab or a line end in a value becomes a blank."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.names = list(columns)
        self.header = _line(self.names)

    def encode(self, records: Records, predictions: Sequence[Prediction]) -> bytes:
        """Return rows and their predictions as a part."""
        rows = map(add_prediction, records.rows, predictions)
        return b"".join(_line(as_text(row.get(name)) for name in self.names) for row in rows)


def _line(cells: Iterable[str | None]) -> bytes:
    return (encodable("\t".join((cell or "").translate(_BLANKS) for cell in cells)) + "\n").encode()


def open_sink(kind: OutputFormat, source: Source, columns: Mapping[str, ColumnType]) -> Sink:
    """Return the sink for the rows of a source; `columns` are those of the input."""
    match kind:
        case OutputFormat.JSONL:
            return JsonSink()
        case OutputFormat.TSV:
            return TsvSink(output_columns(columns))
        case OutputFormat.PARQUET:
            from treepiece.jobs.parquet import ParquetSink  # needs pyarrow

            return ParquetSink(source, columns)
