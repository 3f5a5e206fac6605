"""Places of rows as numbers, and the rows of some places, read again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from treepiece.checking.findings import Place
from treepiece.data.reader import RowStream, read_pair, reread_rows
from treepiece.data.rows import Row
from treepiece.trees.frame import Frame


class Places:
    """Numbers the lines of several files, so that a place is one number.

    >>> places = Places()
    >>> places.open("a.tsv", "a.tsv"); _ = places.number(7); places.open("b.tsv", "b.tsv"); places.number(2)
    9
    >>> print(places.locate(9))
    b.tsv, line 2
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._files: list[tuple[str, RowStream]] = []
        self._last = 0

    @property
    def file(self) -> str | None:
        """The current file."""
        return self._files[-1][0] if self._files else None

    def open(self, file: str, source: RowStream) -> None:
        """Begin with a file; `source` is where its rows can be read again."""
        self._starts.append(self._last)
        self._files.append((file, source))

    def number(self, line: int) -> int:
        """Return the number of a line of the current file."""
        self._last = self._starts[-1] + line
        return self._last

    def locate(self, place: int) -> Place:
        """Return the file and the line of a number."""
        file = bisect_right(self._starts, place - 1) - 1
        return Place(self._files[file][0], place - self._starts[file])

    def frames(self, places: set[int]) -> dict[int, Frame]:
        """Return the frames of some places, read again; none for standard input and for rows that are generated."""
        found: dict[int, Frame] = {}
        for number, (start, (file, source)) in enumerate(zip(self._starts, self._files, strict=True)):
            end = self._starts[number + 1] if number + 1 < len(self._starts) else self._last
            lines = {place - start for place in places if start < place <= end}
            for line, row in _reread(file, source, lines).items() if lines else ():
                if row.frame is not None:
                    found[start + line] = row.frame
        return found


def _reread(file: str, source: RowStream, lines: set[int]) -> dict[int, Row]:
    if isinstance(source, str | Path):
        return reread_rows(file, lines) if str(source) != "-" else {}
    if not isinstance(source, Sequence):
        return {}
    few = ((line, source[line - 1]) for line in lines)
    return {line: row if isinstance(row, Row) else read_pair(row, line) for line, row in few}
