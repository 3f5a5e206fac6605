"""Arguments and options that several commands share, and the rows that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treepiece.cli.console import ProgressBars, note
from treepiece.data.reader import find_files, read_rows
from treepiece.data.rows import ReadReport, Row
from treepiece.errors import DataError

if TYPE_CHECKING:
    from treepiece.runtime.parser import Parser

_SHOWN = 5

BUNDLED_HELP = "or `bundled`, the model that comes with treepiece (write `./bundled` for a folder of that name)."
"""The end of the help of options that take a model. Their type is `str`, because a `Path` would drop the `./`."""

Model = Annotated[
    str, typer.Option("--model", metavar="MODEL", help=f"A folder that `treepiece export` wrote, {BUNDLED_HELP}")
]
Int8 = Annotated[
    bool | None,
    typer.Option("--int8/--float", help="Which graphs to run.  [default: the fastest]", show_default=False),
]
Spelling = Annotated[
    bool, typer.Option("--spelling/--no-spelling", help="Correct words that the model has never seen before parsing.")
]
Threads = Annotated[int | None, typer.Option(metavar="N", help="How many cores to use.  [default: all]")]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A TOPv2 folder, a file (TSV, JSONL, or one bracketed tree per line), or - for standard input.",
    ),
]
Split = Annotated[str, typer.Option(metavar="SPLIT", help="Which files of a folder: those named DOMAIN_SPLIT.tsv.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text for people.")]


def load_parser(model: str, int8: bool | None, threads: int | None, *, spelling: bool) -> Parser:
    """Return the parser that the options of these names choose."""
    from treepiece.runtime.parser import Parser

    precision = None if int8 is None else "int8" if int8 else "float"
    return Parser.load(model, precision=precision, threads=threads, spelling=spelling)


def load_rows(data: str, *, split: str, strict: bool = False) -> list[Row]:
    """Return the rows of a data source, and report those that cannot be read on standard error."""
    total, done = _kilobytes(data, split), 0.0
    with ProgressBars("kB") as bars:

        def count(n_bytes: int) -> None:
            nonlocal done
            done += n_bytes / 1024
            bars.update("reading", done, total)

        report = ReadReport(strict=strict, on_bytes=count)
        rows = list(read_rows(data, split=split, report=report))
    note_bad_rows(report)
    if not rows:
        raise DataError(f"{data}: no row in it can be read")
    return rows


def note_bad_rows(report: ReadReport) -> None:
    """Write which rows cannot be read to standard error."""
    for bad in report.bad_rows[:_SHOWN]:
        note(f"skipped: {bad}")
    if len(report.bad_rows) > _SHOWN:
        note(f"skipped: {len(report.bad_rows) - _SHOWN:,} more rows")
    if report.bad_rows:
        note(f"read {report.n_rows:,} rows, skipped {len(report.bad_rows):,} (use --strict to stop at the first)")


def _kilobytes(data: str, split: str) -> float | None:
    if data == "-":
        return None
    return sum(Path(file).stat().st_size for file in find_files(data, split)) // 1024 or None  # a pipe has no size
