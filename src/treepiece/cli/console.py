"""The terminal: results go to standard output, everything else to standard error; Ctrl-C stops at a safe point.

Importing Rich takes as long as a hundred parses, so functions import it on demand.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress


@cache
def stderr() -> Console:
    """Return the console for everything but results; it is shared, so that messages and bars do not collide."""
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
    """Write a message to standard error."""
    stderr().print(text, markup=False, highlight=False, soft_wrap=True)


def wants_colour() -> bool:
    """Return whether standard output is a terminal that shows colours."""
    if not sys.stdout.isatty() and "FORCE_COLOR" not in os.environ:
        return False
    from rich.console import Console

    return Console().color_system is not None


def say_table(title: str, rows: Iterable[Sequence[object]], head: Sequence[str] = (), *, is_text: bool = False) -> None:
    """Write rows as a table; without a head, each is a name and its value. Columns of numbers are flush right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, title=Text(title), box=box.SIMPLE, show_header=bool(head), title_justify="left")
    for row in rows:
        table.add_row(*(Text(_format(value)) for value in row))
    for place, column in enumerate(table.columns):
        column.no_wrap, column.justify = place == 0, "right" if place and not is_text else "left"
    console = Console()
    console.print(table, width=max(console.width, 60))


def _format(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


class ProgressBars:
    """Draws the progress of long work on standard error, if that is a terminal: a bar for the current stage.

    It is a `treepiece.progress.Progress`. With a `unit` it shows a speed, such as `512 rows/s`; work that an earlier
    process did, before an interruption, does not count.
    """

    def __init__(self, unit: str = "", *, is_shown: bool = True) -> None:
        self._unit = unit
        self._is_shown = is_shown and sys.stderr is not None and sys.stderr.isatty()
        self._bars: RichProgress | None = None

    def __enter__(self) -> Self:
        if self._is_shown:
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            detail = TextColumn("{task.fields[detail]}")
            columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), detail, TimeRemainingColumn()
            # Otherwise Rich redirects standard output while a bar is shown, and results go to the terminal, not a file.
            self._bars = Progress(*columns, console=stderr(), transient=True, redirect_stdout=False)
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, stage: str, done: float, total: float | None = None, detail: str = "") -> None:
        """Draw the progress of a stage; a new stage replaces the previous one."""
        if self._bars is None:
            return
        for task in self._bars.tasks:
            if task.description != stage:
                self._bars.remove_task(task.id)
        if not self._bars.tasks:
            self._bars.add_task(stage, total=total, detail="", begin=done)
        (task,) = self._bars.tasks
        if self._unit and not detail:
            rate = (done - task.fields["begin"]) / max(1e-9, task.elapsed or 0.0)
            detail = f"{rate:,.0f} {self._unit}/s"
        self._bars.update(task.id, completed=done, total=total, detail=detail)

    def message(self, text: str) -> None:
        """Write a message to standard error."""
        note(text)


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C or SIGTERM was received; a second one interrupts at once."""
    signals: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)
        note("stopping after this step, to save; press Ctrl-C again to stop at once")

    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
