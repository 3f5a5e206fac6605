"""Reads data for a command, with a progress bar and a report of what could not be read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from treepiece.cli.console import note, progress
from treepiece.data.reader import find_files, read_rows
from treepiece.data.rows import ReadReport, Row
from treepiece.errors import DataError

_SHOWN = 5

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A TOPv2 folder, a file (TSV, JSONL, or one bracketed tree a line), or - for standard input.",
    ),
]
Split = Annotated[str, typer.Option(help="Which files of a folder: those named DOMAIN_SPLIT.tsv.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of text for people.")]

BUNDLED_HELP = "or `bundled`: the one that comes with treepiece (a folder of yours that is called so is `./bundled`)."
"""How an option that takes the folder of a model goes on. Its type is `str`: a `Path` would drop the `./`."""


def load_rows(data: str, *, split: str, strict: bool = False) -> list[Row]:
    """Return the rows of a data source; report on standard error those that could not be read."""
    with progress() as bars:
        task = bars.add_task("reading", total=_size(data, split), unit="kB")
        report = ReadReport(strict=strict, on_bytes=lambda n: bars.advance(task, n / 1024))
        rows = list(read_rows(data, split=split, report=report))
    for bad in report.bad_rows[:_SHOWN]:
        note(f"skipped: {bad}")
    if len(report.bad_rows) > _SHOWN:
        note(f"skipped: {len(report.bad_rows) - _SHOWN:,} more rows")
    if report.bad_rows:
        note(f"read {report.n_rows:,} rows, skipped {len(report.bad_rows):,} (use --strict to stop at the first)")
    if not rows:
        raise DataError(f"{data}: there are no rows in it that can be read")
    return rows


def _size(data: str, split: str) -> float | None:
    if data == "-":
        return None
    return sum(Path(file).stat().st_size for file in find_files(data, split)) // 1024 or None  # a pipe has no size
