"""Progress of long work: training, evaluating, exporting, training a tokenizer.

Long-running functions accept a `Progress` and report to it. The command line draws bars; a notebook or a service can
implement the two methods otherwise:

>>> class Lines:
...     def update(self, stage, done, total=None, detail=""):
...         print(stage, done, "of", total, detail)
...
...     def message(self, text):
...         print(text)
>>> progress: Progress = Lines()
>>> progress.update("training", 20, 800, "loss 1.7")
training 20 of 800 loss 1.7
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives reports on the progress of long work."""

    def update(self, stage: str, done: float, total: float | None = None, detail: str = "") -> None:
        """Report that `done` of `total` steps of a stage are complete; `total` is None if it is not known.

        One stage runs at a time. A stage may end before it reaches its total: the next stage replaces it.
        """

    def message(self, text: str) -> None:
        """Report one line for people."""


class NoProgress:
    """Ignores all reports."""

    def update(self, stage: str, done: float, total: float | None = None, detail: str = "") -> None:
        """Ignore the report."""

    def message(self, text: str) -> None:
        """Ignore the message."""
