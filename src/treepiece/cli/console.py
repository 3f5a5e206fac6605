"""Where the command line writes: answers to standard output, everything else to standard error.

Rich takes as long to load as a parse takes a hundred times, so it is loaded when something is drawn with it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


@cache
def stderr() -> Console:
    """Return where everything but answers goes: one console, so that remarks do not run into progress bars."""
    from rich.console import Console

    return Console(stderr=True)


def say(text: str) -> None:
    """Write a line to standard output; what cannot be encoded, such as a lone surrogate, is replaced."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, errors="replace").decode(encoding) + "\n")


def say_json(value: object) -> None:
    """Write one JSON value on one line."""
    say(json.dumps(value))


def note(text: str) -> None:
    """Write a remark to standard error."""
    stderr().print(text, markup=False, highlight=False, soft_wrap=True)


def wants_colour() -> bool:
    """Return whether standard output is a terminal that shows colours."""
    if not sys.stdout.isatty() and "FORCE_COLOR" not in os.environ:
        return False
    from rich.console import Console

    console = Console()
    return console.is_terminal and console.color_system is not None


def say_table(title: str, rows: Sequence[tuple[str, object]]) -> None:
    """Write names and values as a table."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), box=box.SIMPLE, show_header=False, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    for name, value in rows:
        table.add_row(name, Text(_format(value)))
    console = Console()
    console.print(table, width=max(console.width, 60))


def _format(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


@contextmanager
def progress() -> Iterator[Progress]:
    """Give a progress bar on standard error; nothing is drawn where that is not a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeRemainingColumn(),
    )
    # Rich would take standard output over while a bar is up, and answers would go to the terminal, not to a file.
    is_shown = stderr().is_terminal
    with Progress(*columns, console=stderr(), transient=True, disable=not is_shown, redirect_stdout=False) as bars:
        yield bars
