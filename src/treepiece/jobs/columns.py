"""The columns of rows: their types, the text column, and those that a prediction adds."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from treepiece.errors import DataError, OptionError

TEXT_COLUMNS = ("utterance", "text")
"""The names of the text column if none is given: the first of them that exists."""

Prediction = dict[str, Any]
"""The values of the predicted columns for one row."""


class ColumnType(StrEnum):
    """The type of a column's values; mixed types, lists, objects and large integers are texts, in JSON."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "text"


PREDICTED = {
    "tree": ColumnType.TEXT,
    "confidence": ColumnType.FLOAT,
    "understood": ColumnType.BOOL,
    "error": ColumnType.TEXT,
}
"""The columns that a prediction adds to a row."""


def type_of(value: object) -> ColumnType | None:
    """Return the column type of a JSON value; None for null, which every type allows."""
    if value is None:
        return None
    if isinstance(value, bool):
        return ColumnType.BOOL
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return ColumnType.INT
    return ColumnType.FLOAT if isinstance(value, float) else ColumnType.TEXT


def join_types(one: ColumnType | None, other: ColumnType | None) -> ColumnType | None:
    """Return a type that holds the values of both.

    >>> join_types(ColumnType.INT, ColumnType.FLOAT).value, join_types(ColumnType.INT, ColumnType.TEXT).value
    ('float', 'text')
    """
    if one is None or other is None or one == other:
        return one or other
    return ColumnType.FLOAT if {one, other} == {ColumnType.INT, ColumnType.FLOAT} else ColumnType.TEXT


def infer_columns(rows: Iterable[Mapping[str, object]]) -> dict[str, ColumnType]:
    """Return the columns of rows, in order of first appearance."""
    found: dict[str, ColumnType | None] = {}
    for row in rows:
        for name, value in row.items():
            found[name] = join_types(found.get(name), type_of(value))
    return {name: kind or ColumnType.TEXT for name, kind in found.items()}


def output_columns(columns: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
    """Return the columns of the output; the predicted columns replace input columns of the same name."""
    return {name: kind for name, kind in columns.items() if name not in PREDICTED} | PREDICTED


def add_prediction(row: Mapping[str, Any], prediction: Prediction) -> dict[str, Any]:
    """Return a row with its prediction at the end, which replaces columns of the same names."""
    return {name: value for name, value in row.items() if name not in prediction} | prediction


def choose_column(names: Sequence[str], wanted: Sequence[str], where: str) -> str:
    """Return the first wanted name that a column has; raise with the existing names if there is none."""
    for name in wanted:
        if name in names:
            return name
    there = ", ".join(repr(name)[:40] for name in names[:10]) or "none"
    raise OptionError(
        f"{where}: there is no column {' or '.join(map(repr, wanted))}, found {there}: name one with --column"
    )


def check_names(names: Iterable[str], where: str) -> None:
    """Raise if two columns have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{where}: two columns are named {name!r:.60}: rename one")


def as_text(value: object) -> str | None:
    """Return a value for a text column: a text unchanged, everything else as JSON.

    >>> as_text("one"), as_text(True), as_text([1, 2])
    ('one', 'true', '[1, 2]')
    """
    return value if value is None or isinstance(value, str) else json.dumps(value, allow_nan=False)


def as_type(value: object, kind: ColumnType) -> object:
    """Return a value converted to the type of a column."""
    if kind == ColumnType.TEXT:
        text = as_text(value)
        return None if text is None else encodable(text)
    return float(value) if kind == ColumnType.FLOAT and isinstance(value, int) else value


def encodable(text: str) -> str:
    """Return a text that UTF-8 can encode: a lone surrogate becomes a question mark."""
    return text.encode(errors="replace").decode()


def finite(value: float) -> float | None:
    """Return a number that JSON can hold; None for NaN and the infinities.

    >>> finite(1.5), finite(float("nan"))
    (1.5, None)
    """
    return value if math.isfinite(value) else None
