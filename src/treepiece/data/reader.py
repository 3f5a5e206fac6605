"""Reads rows from a TOPv2 folder, a file, or standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from treepiece.data.formats import ParseLine, choose_format
from treepiece.data.rows import BadRow, ReadReport, Row
from treepiece.errors import DataError, TreepieceError

DEFAULT_SPLIT = "train"


def read_rows(source: str | Path, *, split: str = DEFAULT_SPLIT, report: ReadReport | None = None) -> Iterator[Row]:
    """Yield the rows of a folder (its files of one split), a file, or `-` for standard input.

    Rows of a folder that do not name their domain get that of their file's name.

    A row that cannot be read is counted in `report` with its file, line and reason; without a report it raises.
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
        hint = "; a tree itself is read from standard input" if str(path).startswith("[") else ""
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
            text = _decode(raw, is_first=number == 1)
            if not text.strip():
                continue
            chosen, is_header = (parse, False) if parse else choose_format(text)
            row = None if is_header else chosen(text)
        except TreepieceError as error:
            where = (
                "parse, " if getattr(error, "column", None) else ""
            )  # columns are counted from where the parse begins
            report.refuse(BadRow(name, number, f"{where}{error}"))
        else:
            parse = chosen  # only now: a first row that cannot be read must not decide how the others are
            if row:
                report.count(row)
                yield replace(row, line=number)


def _decode(raw: bytes, *, is_first: bool) -> str:
    try:
        text = raw.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start + 1} is not UTF-8: save the file as UTF-8") from None
    return text.removesuffix("\n").removesuffix("\r")
