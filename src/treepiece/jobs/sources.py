"""The rows of an input file, a piece at a time. A piece can be read by itself, by any process that has the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from treepiece.errors import DataError
from treepiece.jobs.columns import Kind
from treepiece.jobs.job import InputFormat, cannot, format_of
from treepiece.jobs.lines import decode_line

MOST_BYTES = 1 << 22
"""A piece ends when it has so many bytes: memory stays bounded however long the lines are."""

LONGEST_LINE = 1 << 24
"""A longer line is not read: it has an error."""

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Piece:
    """Some rows of a file: the number of the first, counted from 0, how many, and where they are."""

    first: int
    rows: int
    place: int
    size: int


class Records:
    """The rows of a piece: `texts` has the text of each, or why there is none, and `rows` the values by column."""

    def __init__(self, texts: Sequence[str | DataError], rows: Sequence[dict[str, Any]]) -> None:
        self.texts = texts
        self._rows = rows

    @property
    def rows(self) -> Sequence[dict[str, Any]]:
        """The values of each row, as JSON can hold them."""
        return self._rows


class Source(Protocol):
    """A file of rows."""

    path: Path

    def cut(self, rows: int) -> Iterator[Piece]:
        """Yield the pieces of the file, each of so many rows or fewer."""

    def read(self, piece: Piece) -> Records:
        """Return the rows of a piece."""

    def columns(self) -> dict[str, Kind]:
        """Return the columns of all rows; this may read the whole file."""

    def first_columns(self) -> list[str]:
        """Return the columns of the first rows."""

    def where(self, row: int) -> str:
        """Return how a person finds a row, such as `line 7`."""


class LineSource(ABC):
    """A file with a row in each line, which `_row` of a subclass reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.begin = 0  # the byte that the first row begins with
        if not path.exists():
            raise DataError(f"{path}: no such file")
        if not path.is_file():
            raise DataError(f"{path}: expected a file; texts of a pipe are read from standard input")

    @abstractmethod
    def _row(self, line: str) -> tuple[str | DataError, dict[str, Any]]:
        """Return the text of a row, or why there is none, and its values."""

    def where(self, row: int) -> str:
        """Return the line of a row."""
        return f"line {row + 1 + (self.begin > 0)}"

    def cut(self, rows: int) -> Iterator[Piece]:
        """Yield the pieces of the file; a line that is too long to be read is a piece by itself."""
        first = count = size = 0
        place = self.begin
        for length in self._lengths():
            if count == rows or (count and size + length > MOST_BYTES):
                yield Piece(first, count, place, size)
                first, count, place, size = first + count, 0, place + size, 0
            count, size = count + 1, size + length
        if count:
            yield Piece(first, count, place, size)

    def _lengths(self) -> Iterator[int]:
        """Yield the number of bytes of each line."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.begin)
                length = 0
                while part := file.readline(_BLOCK):
                    length += len(part)
                    if part.endswith(b"\n"):
                        yield length
                        length = 0
                if length:
                    yield length
        except OSError as error:
            raise cannot("read", self.path, error) from None

    def read(self, piece: Piece) -> Records:
        """Return the rows of a piece."""
        if piece.size > LONGEST_LINE:
            reason = DataError(f"a line of {piece.size:,} bytes is too long: expected {LONGEST_LINE:,} or fewer")
            return Records([reason], [{}])
        try:
            with self.path.open("rb") as file:
                file.seek(piece.place)
                data = file.read(piece.size)
        except OSError as error:
            raise cannot("read", self.path, error) from None
        lines = data.removesuffix(b"\n").split(b"\n")
        if (len(data), len(lines)) != (piece.size, piece.rows):
            raise DataError(
                f"{self.path}: changed while it was read: remove what is written of the job and begin again"
            )
        found = [self._try(line, is_first=piece.place == number == 0) for number, line in enumerate(lines)]
        return Records([text for text, _ in found], [values for _, values in found])

    def _try(self, raw: bytes, *, is_first: bool) -> tuple[str | DataError, dict[str, Any]]:
        try:
            return self._row(decode_line(raw, is_first=is_first))
        except DataError as error:
            return error, {}

    def first_columns(self) -> list[str]:
        """Return the columns of the first rows."""
        return list(self.columns())

    @abstractmethod
    def columns(self) -> dict[str, Kind]:
        """Return the columns of all rows."""


def open_source(path: Path, column: str | None = None) -> Source:
    """Return the rows of a file, in the format that its name says; `column` names the one with the text."""
    from treepiece.jobs.formats import JsonSource, TextSource, TsvSource

    match format_of("--input", path, InputFormat):
        case InputFormat.TXT:
            return TextSource(path, column)
        case InputFormat.JSONL:
            return JsonSource(path, column)
        case InputFormat.TSV:
            return TsvSource(path, column)
        case InputFormat.PARQUET:
            from treepiece.jobs.tables import ParquetSource  # it needs pyarrow, the others do not

            return ParquetSource(path, column)
