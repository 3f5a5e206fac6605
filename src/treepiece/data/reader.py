"""Reads rows from a TOPv2 folder, a file, or standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from treepiece.data.rows import BadRow, ParseLine, ReadReport, Row, choose_format, decode_line
from treepiece.errors import DataError, TreepieceError
from treepiece.trees.frame import Frame

DEFAULT_SPLIT = "train"

DataSource = str | Path | Sequence[Row] | Sequence[tuple[str, str]]
"""A folder or a file, rows, or pairs of an utterance and its parse."""
RowStream = DataSource | Iterable[Row] | Iterable[tuple[str, str]]
"""The same, or rows that are generated one by one."""

STANDARD_INPUT = "standard input"
IN_MEMORY = "the data"
"""What stands for the file of rows that are read from no file."""


def load_rows(data: DataSource, split: str = DEFAULT_SPLIT) -> list[Row]:
    """Return rows from any source; a row that cannot be read raises, and so does a source without rows.

    >>> (row,) = load_rows([("rain today", "[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]")])
    >>> row.frame.leaves[0].text
    'today'
    """
    if isinstance(data, str | Path):
        rows = list(read_rows(data, split=split))
    else:
        rows = [row if isinstance(row, Row) else read_pair(row, place) for place, row in enumerate(data, start=1)]
    if not rows:
        raise DataError(f"{data if isinstance(data, str | Path) else IN_MEMORY}: there are no rows in it")
    return rows


def read_pair(pair: Any, place: int) -> Row:  # noqa: ANN401  # any input of the user
    """Return the row of an utterance and its parse; `place` is its number in the data, from 1."""
    try:
        utterance, parse = pair
        frame = Frame.from_brackets(parse, utterance)
    except TreepieceError as error:
        raise DataError(f"row {place}: {error}") from None
    except (TypeError, ValueError):
        raise DataError(f"row {place}: expected an utterance and its parse, got {pair!r:.60}") from None
    return Row(frame.skeleton, frame, line=place)


def read_rows(source: str | Path, *, split: str = DEFAULT_SPLIT, report: ReadReport | None = None) -> Iterator[Row]:
    """Yield the rows of a folder (its files of one split), a file, or `-` for standard input.

    Rows of a folder without a domain get the one in their file's name. A row that cannot be read is counted in
    `report` with its file, line and reason; without a report it raises.
    """
    for _, row in stream_rows(source, split=split, report=report):
        yield row


def stream_rows(
    data: RowStream, *, split: str = DEFAULT_SPLIT, report: ReadReport | None = None
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of any source, as `read_rows` does, each with the name of its file."""
    report = report or ReadReport(strict=True)
    if not isinstance(data, str | Path):
        yield from _number_rows(data, report)
        return
    if str(data) == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed: give a file or a folder")
        yield from ((STANDARD_INPUT, row) for row in _read_lines(STANDARD_INPUT, sys.stdin.buffer, report))
        return
    is_folder = Path(data).is_dir()
    for path in find_files(data, split):
        domain = path.stem.removesuffix(f"_{split}") if is_folder else None
        try:
            with path.open("rb") as file:
                for row in _read_lines(str(path), file, report):
                    yield str(path), row if row.domain else replace(row, domain=domain)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _number_rows(data: Iterable[Any], report: ReadReport) -> Iterator[tuple[str, Row]]:
    for place, row in enumerate(data, start=1):
        try:
            made = replace(row, line=place) if isinstance(row, Row) else read_pair(row, place)
        except DataError as error:
            report.refuse(BadRow(IN_MEMORY, place, str(error)))
        else:
            report.n_rows += 1
            yield IN_MEMORY, made


def reread_rows(file: str | Path, lines: Collection[int]) -> dict[int, Row]:
    """Return some rows of a file by their lines, without parsing the others."""
    report = ReadReport()
    try:
        with Path(file).open("rb") as whole:
            # Up to the first row, lines also tell the format.
            few = (
                raw if number in lines or not report.n_rows else b""
                for number, raw in enumerate(islice(whole, max(lines, default=0)), start=1)
            )
            return {row.line: row for row in _read_lines(str(file), few, report) if row.line in lines}
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None


def find_files(source: str | Path, split: str = DEFAULT_SPLIT) -> Sequence[Path]:
    """Return the file, or the files of a folder that belong to a split: `DOMAIN_SPLIT.tsv`, as in TOPv2."""
    if not re.fullmatch(r"[\w-]+", split):
        raise DataError(f"a split is named with letters, digits, - and _, got {split!r}")
    path = Path(source)
    try:
        path.stat()
        files = sorted(path.glob(f"*_{split}.tsv")) if path.is_dir() else [path]
    except FileNotFoundError:
        hint = "; pipe trees to standard input instead" if str(path).startswith("[") else ""
        raise DataError(f"{path}: no such file or folder{hint}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not files:
        splits = sorted({file.stem.partition("_")[2] for file in path.glob("*_*.tsv")})
        there = f"its splits are {', '.join(splits)}" if splits else "it has no such files at all"
        raise DataError(f"{path}: no files named DOMAIN_{split}.tsv; {there}")
    return files


def _read_lines(name: str, lines: BinaryIO | Iterable[bytes], report: ReadReport) -> Iterator[Row]:
    parse: ParseLine | None = None
    for number, raw in enumerate(lines, start=1):
        if report.on_bytes:
            report.on_bytes(len(raw))
        try:
            text = decode_line(raw, is_first=number == 1)
            if not text.strip():
                continue
            chosen, is_header = (parse, False) if parse else choose_format(text)
            row = None if is_header else chosen(text)
        except TreepieceError as error:
            where = "parse, " if getattr(error, "column", None) else ""  # columns count from the start of the parse
            report.refuse(BadRow(name, number, f"{where}{error}"))
        else:
            parse = chosen  # only now, so that an unreadable first row does not determine the format
            if row:
                report.n_rows += 1
                yield replace(row, line=number)
