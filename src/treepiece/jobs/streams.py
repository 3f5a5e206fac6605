"""Texts that are answered as they come: the lines of a pipe, or the rows of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from treepiece.errors import DataError
from treepiece.jobs.lines import decode_line, split_lines
from treepiece.jobs.sources import open_source

_ROWS = 64


@dataclass(frozen=True)
class Item:
    """A text to parse and where it is found; `text` may be None where an `error` says why it cannot be read."""

    where: str
    text: str | None
    error: DataError | None = None


def read_pipe(read: Callable[[], bytes]) -> Iterator[list[Item]]:
    """Yield the lines that are there after each call of `read`, which returns some bytes, and none at the end."""
    number = 0
    for lines in split_lines(read):
        items = []
        for raw in lines:
            number += 1
            try:
                items.append(Item(f"line {number}", decode_line(raw, is_first=number == 1)))
            except DataError as error:
                items.append(Item(f"line {number}", raw.decode(errors="replace"), error))
        yield items


def read_file(path: Path, column: str | None = None) -> Iterator[list[Item]]:
    """Yield the texts of a file's rows."""
    source = open_source(path, column)
    for piece in source.cut(_ROWS):
        found = enumerate(source.read(piece).texts, start=piece.first)
        yield [
            Item(source.where(row), text) if isinstance(text, str) else Item(source.where(row), None, text)
            for row, text in found
        ]
