"""Reads rows from a TOPv2 folder, a file, or standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from treepiece.data.rows import BadRow, ParseLine, ReadReport, Row, choose_format, decode_line
from treepiece.errors import DataError, TreepieceError
from treepiece.trees.frame import Frame

DEFAULT_SPLIT = "train"

DataSource = str | Path | Sequence[Row] | Sequence[tuple[str, str]]
"""A folder or a file, rows, or pairs of an utterance and its parse."""


def load_rows(data: DataSource, split: str = DEFAULT_SPLIT) -> list[Row]:
    """Return rows from any source; a row that cannot be read raises, and so does a source without rows.

    >>> (row,) = load_rows([("rain today", "[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]")])
    >>> row.frame.leaves[0].text
    'today'
    """
    if isinstance(data, str | Path):
        rows = list(read_rows(data, split=split))
    else:
        rows = [row if isinstance(row, Row) else _read_pair(row, place) for place, row in enumerate(data, start=1)]
    if not rows:
        raise DataError(f"{data if isinstance(data, str | Path) else 'the data'}: there are no rows in it")
    return rows


def _read_pair(pair: Any, place: int) -> Row:  # noqa: ANN401  # any input of the user
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
    report = report or ReadReport(strict=True)
    if str(source) == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed: give a file or a folder")
        yield from _read_lines("standard input", sys.stdin.buffer, report)
        return
    is_folder = Path(source).is_dir()
    for path in find_files(source, split):
        domain = path.stem.removesuffix(f"_{split}") if is_folder else None
        try:
            with path.open("rb") as file:
                for row in _read_lines(str(path), file, report):
                    yield row if row.domain else replace(row, domain=domain)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None


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
