"""Input formats: files as chunks of rows, each of which a process can read on its own, and the lines of a pipe.

Only a line feed ends a line: U+2028 and similar characters are part of a text. The source for Parquet is in `parquet`.
A new format also needs a member of `job.InputFormat` and a case in `open_source`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from treepiece.data.rows import decode_line, json_object
from treepiece.errors import DataError, OptionError
from treepiece.jobs.columns import (
    PREDICTED,
    TEXT_COLUMNS,
    ColumnType,
    check_names,
    choose_column,
    finite,
    infer_columns,
)
from treepiece.jobs.job import PART_ROWS, InputFormat, format_of, readable

CHUNK_BYTES = 1 << 22
"""The maximum size of a chunk, which bounds memory even if lines are long."""

MAX_LINE_BYTES = 1 << 24
"""A longer line of a file is not read: the row has an error."""

MAX_TEXT_BYTES = 1 << 20
"""The number of bytes that are kept of a line of a pipe: more than in any text that can be parsed."""

_READ_BYTES = 1 << 20
_MAX_HEADER_BYTES = 1 << 20
_MAX_DEPTH = 100
"""Values that are nested deeper may be readable, but not writable: Python's limit depends on the caller."""

_TOP_COLUMNS = {2: ["utterance", "parse"], 3: ["utterance", "tokenized_utterance", "parse"]}
"""The columns of TSV files without a header, as `treepiece data toy` writes them, and TOP's."""

_STREAM_ROWS = 64


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file: the number of the first, counted from 0, their count, and their position."""

    first: int
    rows: int
    place: int
    size: int


class Records:
    """The rows of a chunk: `texts` has the text of each or the error, and `rows` the values by column."""

    def __init__(self, texts: Sequence[str | DataError], rows: Sequence[dict[str, Any]]) -> None:
        self.texts = texts
        self._rows = rows

    @property
    def rows(self) -> Sequence[dict[str, Any]]:
        """The values of each row, as JSON can hold them."""
        return self._rows


class Source(ABC):
    """A file of rows: `names` are the columns of the first rows, `wanted` those that may hold the text."""

    names: Sequence[str]

    def __init__(self, path: Path, column: str | None) -> None:
        if column in PREDICTED:
            raise OptionError(f"--column {column}: the output has a column of this name: rename that of the input")
        self.path = path
        self.wanted = TEXT_COLUMNS if column is None else (column,)

    @abstractmethod
    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield the chunks of the file, each of at most `rows` rows."""

    @abstractmethod
    def read(self, chunk: Chunk) -> Records:
        """Return the rows of a chunk."""

    def columns(self) -> dict[str, ColumnType]:
        """Return the columns of all rows; this may read the whole file."""
        return dict.fromkeys(self.names, ColumnType.TEXT)

    @abstractmethod
    def where(self, row: int) -> str:
        """Return the position of a row for people, such as `line 7`."""


def open_source(path: Path, column: str | None = None) -> Source:
    """Return the rows of a file, in the format of its name; `column` names the one with the text."""
    match format_of("--input", path, InputFormat):
        case InputFormat.TXT:
            return TextSource(path, column)
        case InputFormat.JSONL:
            return JsonSource(path, column)
        case InputFormat.TSV:
            return TsvSource(path, column)
        case InputFormat.PARQUET:
            from treepiece.jobs.parquet import ParquetSource  # needs pyarrow

            return ParquetSource(path, column)


class LineSource(Source):
    """A file with one row per line, which `_row` of a subclass reads."""

    def __init__(self, path: Path, column: str | None) -> None:
        super().__init__(path, column)
        self.begin = 0  # the position of the first row, in bytes
        if not path.exists():
            raise DataError(f"{path}: no such file")
        if not path.is_file():
            raise DataError(f"{path}: expected a file; texts of a pipe are read from standard input")

    @abstractmethod
    def _row(self, line: str) -> tuple[str | DataError, dict[str, Any]]:
        """Return the text of a row or the error, and its values."""

    def where(self, row: int) -> str:
        """Return the line of a row."""
        return f"line {row + 1 + (self.begin > 0)}"

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield the chunks of the file; a line that is too long to read is a chunk of its own."""
        first = count = size = 0
        place = self.begin
        for length in self._lengths():
            if count == rows or (count and size + length > CHUNK_BYTES):
                yield Chunk(first, count, place, size)
                first, count, place, size = first + count, 0, place + size, 0
            count, size = count + 1, size + length
        if count:
            yield Chunk(first, count, place, size)

    def _lengths(self) -> Iterator[int]:
        """Yield the number of bytes of each line."""
        with readable(self.path), self.path.open("rb") as file:
            file.seek(self.begin)
            length = 0
            while part := file.readline(_READ_BYTES):
                length += len(part)
                if part.endswith(b"\n"):
                    yield length
                    length = 0
            if length:
                yield length

    def read(self, chunk: Chunk) -> Records:
        """Return the rows of a chunk."""
        if chunk.size > MAX_LINE_BYTES:
            reason = DataError(f"a line of {chunk.size:,} bytes is too long: expected {MAX_LINE_BYTES:,} or fewer")
            return Records([reason], [{}])
        with readable(self.path), self.path.open("rb") as file:
            file.seek(chunk.place)
            data = file.read(chunk.size)
        lines = data.removesuffix(b"\n").split(b"\n")
        if (len(data), len(lines)) != (chunk.size, chunk.rows):
            raise DataError(f"{self.path}: changed while it was read: remove the parts of the job and start over")
        found: list[tuple[str | DataError, dict[str, Any]]] = []
        for number, raw in enumerate(lines):
            try:
                found.append(self._row(decode_line(raw, is_first=chunk.place == number == 0)))
            except DataError as error:
                found.append((error, {}))
        return Records([text for text, _ in found], [values for _, values in found])


class TextSource(LineSource):
    """One text per line."""

    def __init__(self, path: Path, column: str | None) -> None:
        super().__init__(path, None)
        self.names = TEXT_COLUMNS[:1]
        if column is not None:
            raise OptionError(f"--column {column}: {path} is plain text, one utterance per line: leave it out")

    def _row(self, line: str) -> tuple[str | DataError, dict[str, Any]]:
        return line, {TEXT_COLUMNS[0]: line}


class JsonSource(LineSource):
    """One JSON object per line. `NaN` and `Infinity`, which JSON does not have, are read as null."""

    def __init__(self, path: Path, column: str | None) -> None:
        super().__init__(path, column)
        chunk = next(self.chunks(PART_ROWS), None)
        rows = [row for row in self.read(chunk).rows if row] if chunk else []
        self.names = list(infer_columns(rows))
        if rows and not any(isinstance(self._find(row), str) for row in rows):
            # There is no text at all, so the column is wrong, not the rows.
            column = choose_column(self.names, self.wanted, str(path))
            raise OptionError(f"{path}: the column {column!r} holds no texts: name another with --column")

    def _find(self, row: dict[str, Any]) -> object:
        return next((row[name] for name in self.wanted if name in row), None)

    def _row(self, line: str) -> tuple[str | DataError, dict[str, Any]]:
        if not line.strip():
            raise DataError("the line is blank: expected a JSON object")
        value = json_object(line, _DECODER.decode)
        if line.count("[") + line.count("{") > _MAX_DEPTH and _depth(value) > _MAX_DEPTH:
            raise DataError(f"lists and objects are nested more than {_MAX_DEPTH} deep, got {line!r:.60}")
        text = self._find(value)
        if isinstance(text, str):
            return text, value
        return DataError(f"expected a text in {' or '.join(map(repr, self.wanted))}, got {text!r:.60}"), value

    def columns(self) -> dict[str, ColumnType]:
        """Return the columns of all rows: the whole file is read."""
        return infer_columns(row for chunk in self.chunks(PART_ROWS) for row in self.read(chunk).rows)


_DECODER = json.JSONDecoder(parse_constant=lambda name: None, parse_float=lambda text: finite(float(text)))
"""Reads values that JSON cannot write as null: the constants, and numbers such as 1e999, infinite in Python."""


def _depth(value: object) -> int:
    """Return the depth of nested lists and objects."""
    depth = 0
    level = [value]
    while level:
        depth += 1
        nested = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [inner for one in nested for inner in one]
    return depth


class TsvSource(LineSource):
    """Columns separated by tabs. The first line names them; files of utterance and parse need no header."""

    def __init__(self, path: Path, column: str | None) -> None:
        super().__init__(path, column)
        with readable(path), path.open("rb") as file:
            raw = file.readline(_MAX_HEADER_BYTES)
        cells = decode_line(raw, is_first=True).split("\t") if raw else [self.wanted[0]]
        is_top = set(self.wanted).isdisjoint(cells) and cells[-1].startswith("[") and len(cells) in _TOP_COLUMNS
        self.names = _TOP_COLUMNS[len(cells)] if is_top else cells
        check_names(self.names, f"{path}, line 1")
        self._text = self.names.index(choose_column(self.names, self.wanted, f"{path}, line 1"))
        self.begin = 0 if is_top else len(raw)

    def _row(self, line: str) -> tuple[str | DataError, dict[str, Any]]:
        cells = line.split("\t")
        values = dict.fromkeys(self.names, "") | dict(zip(self.names, cells, strict=False))
        if len(cells) != len(self.names):
            expected = f"expected {len(self.names)} columns ({', '.join(self.names):.60})"
            return DataError(f"{expected}, found {len(cells)}: put one tab between columns"), values
        return cells[self._text], values


class StreamText(NamedTuple):
    """A text to parse now, or why it cannot be read, and its position; `shown` is what could be read of it."""

    where: str
    text: str | DataError
    shown: str | None = None


def stream_file(path: Path, column: str | None = None) -> Iterator[list[StreamText]]:
    """Yield the texts of a file's rows, some at a time."""
    source = open_source(path, column)
    for chunk in source.chunks(_STREAM_ROWS):
        texts = source.read(chunk).texts
        yield [StreamText(source.where(row), text) for row, text in enumerate(texts, start=chunk.first)]


def stream_pipe(read: Callable[[], bytes]) -> Iterator[list[StreamText]]:
    """Yield the lines that are complete after each call of `read`, which returns some bytes, and none at the end."""
    number = 0
    for lines in split_lines(read):
        texts = []
        for raw in lines:
            number += 1
            try:
                texts.append(StreamText(f"line {number}", decode_line(raw, is_first=number == 1)))
            except DataError as error:
                texts.append(StreamText(f"line {number}", error, raw.decode(errors="replace")))
        yield texts


def split_lines(read: Callable[[], bytes]) -> Iterator[list[bytes]]:
    """Yield the lines that are complete after each block that `read` returns, until it returns nothing.

    A program that writes a line and waits for the result gets it. Lines are cut off after `MAX_TEXT_BYTES`, which
    bounds memory.
    """
    rest = b""
    while block := read():
        *lines, rest = (rest + block).split(b"\n")
        rest = rest[:MAX_TEXT_BYTES]
        if lines:
            yield lines
    if rest:
        yield [rest]
