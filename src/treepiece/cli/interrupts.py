"""Ctrl-C as a wish: what is being done comes to a point where it can be saved."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from treepiece.cli.console import note


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Give a function that tells whether Ctrl-C (or SIGTERM) came; the second time it interrupts at once."""
    signals: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)
        note("stopping after this step, to save; once more to stop at once")

    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
