"""The columns of rows: what kind of values they hold, and those that an answer adds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from enum import StrEnum

from treepiece.errors import DataError, OptionError

TEXT_COLUMNS = ("utterance", "text")
"""The column with the text, if none is named: the first of these that is there."""


class Kind(StrEnum):
    """What the values of a column are; `json` stands for values of several kinds, and for lists and objects."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "text"
    JSON = "json"


ANSWER = {"tree": Kind.TEXT, "confidence": Kind.FLOAT, "understood": Kind.BOOL, "error": Kind.TEXT}
"""What an answer adds to a row."""


def kind_of(value: object) -> Kind | None:
    """Return the kind of a value of JSON; None for null, which every kind has."""
    if value is None:
        return None
    if isinstance(value, bool):
        return Kind.BOOL
    if isinstance(value, int):
        return Kind.INT if -(1 << 63) <= value < 1 << 63 else Kind.JSON
    if isinstance(value, float):
        return Kind.FLOAT
    return Kind.TEXT if isinstance(value, str) else Kind.JSON


def join_kinds(one: Kind | None, other: Kind | None) -> Kind | None:
    """Return the kind that holds the values of both.

    >>> join_kinds(Kind.INT, Kind.FLOAT).value, join_kinds(Kind.INT, Kind.TEXT).value
    ('float', 'json')
    """
    if one is None or other is None or one == other:
        return one or other
    return Kind.FLOAT if {one, other} == {Kind.INT, Kind.FLOAT} else Kind.JSON


def survey(rows: Iterable[Mapping[str, object]]) -> dict[str, Kind]:
    """Return the columns of rows, in the order in which they are first seen."""
    found: dict[str, Kind | None] = {}
    for row in rows:
        for name, value in row.items():
            found[name] = join_kinds(found.get(name), kind_of(value))
    return {name: kind or Kind.TEXT for name, kind in found.items()}


def with_answer(columns: Mapping[str, Kind]) -> dict[str, Kind]:
    """Return the columns of the output: an answer replaces columns that have its names."""
    return {name: kind for name, kind in columns.items() if name not in ANSWER} | ANSWER


def choose_column(names: Iterable[str], wanted: str | None, where: str) -> str:
    """Return the name of the column with the text; raise with the names that are there if it is not among them."""
    names = list(names)
    choices = [wanted] if wanted is not None else TEXT_COLUMNS
    for name in choices:
        if name in names:
            return name
    there = ", ".join(repr(name)[:40] for name in names[:10]) or "none"
    raise OptionError(
        f"{where}: there is no column {' or '.join(map(repr, choices))}, found {there}: name one with --column"
    )


def check_column(column: str | None) -> None:
    """Raise if the column with the text would be overwritten by the answer."""
    if column in ANSWER:
        raise OptionError(f"--column {column}: the answer has a column of this name: rename that of the input")


def check_names(names: Iterable[str], where: str) -> None:
    """Raise if two columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"{where}: two columns are named {name!r:.60}: rename one")
        seen.add(name)


def as_text(value: object) -> str | None:
    """Return a value for a column of texts: a text as it is, all else as JSON.

    >>> as_text("one"), as_text(True), as_text([1, 2])
    ('one', 'true', '[1, 2]')
    """
    return value if value is None or isinstance(value, str) else json.dumps(value)


def as_kind(value: object, kind: Kind) -> object:
    """Return a value as a column of a kind holds it."""
    if kind in (Kind.TEXT, Kind.JSON):
        text = as_text(value)
        return None if text is None else writable(text)
    return float(value) if kind == Kind.FLOAT and isinstance(value, int) else value


def writable(text: str) -> str:
    """Return a text that UTF-8 can hold: a lone surrogate becomes a question mark."""
    return text.encode(errors="replace").decode()


def finite(value: float) -> float | None:
    """Return a number that JSON can hold, None for the others."""
    return value if math.isfinite(value) else None
