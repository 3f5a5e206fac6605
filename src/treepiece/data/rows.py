"""A row of a data file: what it holds, and what is known of one that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from treepiece.errors import DataError
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node


@dataclass(frozen=True)
class Row:
    """A tree to learn from, and the line it stands in; `frame` is None where a file has trees without an utterance."""

    skeleton: Node
    frame: Frame | None = None
    domain: str | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be read: where it is and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


@dataclass
class ReadReport:
    """Counts what a reader finds. With `strict` the first row that cannot be read raises instead of being counted.

    `on_bytes` is called with the number of bytes of each line, for progress bars.
    """

    strict: bool = False
    on_bytes: Callable[[int], None] | None = None
    n_rows: int = 0
    n_mixed_slots: int = 0
    n_empty_slots: int = 0
    bad_rows: list[BadRow] = field(default_factory=list)

    def count(self, row: Row) -> None:
        """Count a row, and those of its slots that decoupled form cannot tell apart."""
        self.n_rows += 1
        if row.frame is not None:
            self.n_mixed_slots += row.frame.n_mixed
            self.n_empty_slots += sum(span.start == span.end for span in row.frame.spans)

    def refuse(self, bad: BadRow) -> None:
        """Count a row that cannot be read, or raise."""
        if self.strict:
            raise DataError(str(bad))
        self.bad_rows.append(bad)
