"""The formats whose rows are lines: plain text, JSONL, and columns separated by tabs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from treepiece.errors import DataError, OptionError
from treepiece.jobs.columns import TEXT_COLUMNS, Kind, check_column, check_names, choose_column, survey
from treepiece.jobs.job import PART_ROWS, cannot
from treepiece.jobs.lines import decode_line
from treepiece.jobs.sources import LineSource

_TOP_FILES = {2: ["utterance", "parse"], 3: ["utterance", "tokenized_utterance", "parse"]}
"""The columns of files without a header, as `treepiece data toy` writes them, and TOP's."""

_LONGEST_HEADER = 1 << 20
_DEEPEST = 100
"""What is nested deeper can perhaps be read, but not be written again: Python's own limit depends on the caller."""


class TextSource(LineSource):
    """One text a line."""

    def __init__(self, path: Path, column: str | None = None) -> None:
        super().__init__(path)
        if column is not None:
            raise OptionError(f"--column {column}: {path} is plain text, one utterance a line: leave it out")

    def _row(self, line: str) -> tuple[str | DataError, dict[str, Any]]:
        return line, {TEXT_COLUMNS[0]: line}

    def columns(self) -> dict[str, Kind]:
        """Return the one column."""
        return {TEXT_COLUMNS[0]: Kind.TEXT}


class JsonSource(LineSource):
    """One JSON object a line."""

    def __init__(self, path: Path, column: str | None = None) -> None:
        super().__init__(path)
        check_column(column)
        self.column = column
        self._check_first_rows()

    def _first_rows(self) -> list[dict[str, Any]]:
        piece = next(self.cut(PART_ROWS), None)
        return [row for row in self.read(piece).rows if row] if piece else []

    def _check_first_rows(self) -> None:
        """Raise if the first rows are objects and none has a text: then the column is wrong, and not the rows."""
        rows = self._first_rows()
        if rows and not any(isinstance(self._find(row), str) for row in rows):
            names = dict.fromkeys(name for row in rows for name in row)
            column = choose_column(names, self.column, str(self.path))
            raise OptionError(f"{self.path}: the column {column!r} holds no texts: name another with --column")

    def _find(self, row: dict[str, Any]) -> object:
        for name in TEXT_COLUMNS if self.column is None else (self.column,):
            if name in row:
                return row[name]
        return None

    def _row(self, line: str) -> tuple[str | DataError, dict[str, Any]]:
        if not line.strip():
            raise DataError("the line is blank: expected a JSON object")
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"not JSON: {error!s:.100}, got {line!r:.60}") from None
        if not isinstance(value, dict):
            raise DataError(f"expected a JSON object, got {line!r:.60}")
        if line.count("[") + line.count("{") > _DEEPEST and _depth(value) > _DEEPEST:
            raise DataError(f"lists and objects are nested more than {_DEEPEST} deep, got {line!r:.60}")
        text = self._find(value)
        if isinstance(text, str):
            return text, value
        names = " or ".join(map(repr, TEXT_COLUMNS)) if self.column is None else repr(self.column)
        return DataError(f"expected a text in {names}, got {text!r:.60}"), value

    def columns(self) -> dict[str, Kind]:
        """Return the columns of all rows: the whole file is read."""
        return survey(row for piece in self.cut(PART_ROWS) for row in self.read(piece).rows)

    def first_columns(self) -> list[str]:
        """Return the columns of the first rows."""
        return list(survey(self._first_rows()))


def _depth(value: object) -> int:
    """Return how deep lists and objects are nested."""
    depth = 0
    level = [value]
    while level:
        depth += 1
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return depth


class TsvSource(LineSource):
    """Columns separated by tabs. The first line names them; files of utterance and parse may have none that does."""

    def __init__(self, path: Path, column: str | None = None) -> None:
        super().__init__(path)
        check_column(column)
        raw = self._first_line()
        cells = decode_line(raw, is_first=True).split("\t") if raw else [column or TEXT_COLUMNS[0]]
        has_header = bool({column} & {*cells} if column else {*TEXT_COLUMNS} & {*cells})
        is_top = not has_header and cells[-1].startswith("[") and len(cells) in _TOP_FILES
        self.names = _TOP_FILES[len(cells)] if is_top else cells
        check_names(self.names, f"{path}, line 1")
        self._text = self.names.index(choose_column(self.names, column, f"{path}, line 1"))
        self.begin = 0 if is_top else len(raw)

    def _first_line(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                return file.readline(_LONGEST_HEADER)
        except OSError as error:
            raise cannot("read", self.path, error) from None

    def _row(self, line: str) -> tuple[str | DataError, dict[str, Any]]:
        cells = line.split("\t")
        values = dict.fromkeys(self.names, "") | dict(zip(self.names, cells, strict=False))
        if len(cells) != len(self.names):
            expected = f"expected {len(self.names)} columns ({', '.join(self.names):.60})"
            return DataError(f"{expected}, found {len(cells)}: put one tab between columns"), values
        return cells[self._text], values

    def columns(self) -> dict[str, Kind]:
        """Return the columns that the first line names."""
        return dict.fromkeys(self.names, Kind.TEXT)
