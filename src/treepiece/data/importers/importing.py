"""Imports a file or a folder of another tool: chooses the importer, and yields its rows or the lines of a TSV file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from treepiece.data.importers.bio import FOLDER_FILES, is_tag, read_bio_folder, read_conll
from treepiece.data.importers.mtop import COLUMNS, read_mtop
from treepiece.data.importers.naming import LabelNames
from treepiece.data.importers.rasa import read_rasa
from treepiece.data.rows import BadRow, ReadReport, Row, format_row
from treepiece.errors import DataError, TreepieceError

_HEAD = 1 << 16
_YAML = {".yml", ".yaml"}
STANDARD_INPUT = "-"


class ImportFormat(StrEnum):
    """The formats that can be imported."""

    RASA = "rasa"
    BIO = "bio"
    MTOP = "mtop"


Importer = Callable[[BinaryIO, str, ReadReport, LabelNames], Iterator[Row]]
_IMPORTERS: dict[ImportFormat, Importer] = {
    ImportFormat.RASA: read_rasa,
    ImportFormat.BIO: read_conll,
    ImportFormat.MTOP: read_mtop,
}


def import_rows(
    source: str | Path,
    source_format: ImportFormat | None = None,
    report: ReadReport | None = None,
) -> Iterator[Row]:
    """Yield the rows of a file or folder of another tool, or of standard input (`-`).

    A row that cannot be converted is counted in `report` with its file, line and reason; without a report it raises.

    Args:
        source: A file, a folder of BIO files (`seq.in`, `seq.out`, `label`), or a folder of Rasa's YAML files.
        source_format: By default, it is guessed from the source.
        report: Counts rows, and what was left out.
    """
    report = report or ReadReport(strict=True)
    for _, row in _read(source, source_format, report):
        report.n_rows += 1
        yield row


def import_lines(source: str | Path, source_format: ImportFormat | None, report: ReadReport) -> Iterator[str]:
    """Yield the lines of a TSV file for training; a row that TOP text cannot hold is counted as bad, too."""
    for name, row in _read(source, source_format, report):
        try:
            line = format_row(row)
        except TreepieceError as error:
            report.refuse(BadRow(name, row.line, str(error)))
        else:
            report.n_rows += 1
            yield f"{line}\n"


def _read(source: str | Path, source_format: ImportFormat | None, report: ReadReport) -> Iterator[tuple[str, Row]]:
    names = LabelNames()
    if str(source) == STANDARD_INPUT:
        if source_format is None or sys.stdin is None:
            raise DataError("standard input has no name to guess its format from: give --format rasa, bio or mtop")
        yield from (
            ("standard input", row)
            for row in _IMPORTERS[source_format](sys.stdin.buffer, "standard input", report, names)
        )
        return
    path = Path(source)
    try:
        chosen = source_format or guess_format(path)
        if chosen is ImportFormat.BIO and path.is_dir():
            with ExitStack() as stack:
                files = [stack.enter_context((path / name).open("rb")) for name in FOLDER_FILES]
                yield from ((str(path), row) for row in read_bio_folder(files, str(path), report, names))
            return
        for file in _files(path, chosen):
            with file.open("rb") as opened:
                yield from ((str(file), row) for row in _IMPORTERS[chosen](opened, str(file), report, names))
    except OSError as error:
        raise DataError(f"{error.filename or path}: cannot be read: {error.strerror}") from None


def _files(path: Path, source_format: ImportFormat) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix in _YAML and file.is_file())
    if source_format is not ImportFormat.RASA or not files:
        wanted = "files that end in .yml" if source_format is ImportFormat.RASA else "a file"
        raise DataError(f"{path}: a folder: for the format {source_format}, give {wanted}")
    return files


def guess_format(path: Path) -> ImportFormat:
    """Return the format of a file or folder by its name, or by its first lines."""
    if path.is_dir():
        if (path / FOLDER_FILES[0]).exists():
            return ImportFormat.BIO
        if any(file.suffix in _YAML for file in path.rglob("*")):
            return ImportFormat.RASA
    elif path.suffix in _YAML:
        return ImportFormat.RASA
    else:
        with path.open("rb") as file:
            lines = file.read(_HEAD).decode(errors="replace").removeprefix("\ufeff").splitlines()
        if any(len(line.split("\t")) == len(COLUMNS) for line in lines[:2]):
            return ImportFormat.MTOP
        columns = [line.split() for line in lines]
        if any(1 < len(found) <= 3 and is_tag(found[1]) for found in columns):
            return ImportFormat.BIO
    raise DataError(
        f"{path}: its format cannot be told from its name and its first lines: give --format rasa, bio or mtop"
    )
