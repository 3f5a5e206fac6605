"""Validation of single options: a wrong value is reported by name before any work is done."""

from __future__ import annotations

from enum import StrEnum
from typing import SupportsIndex, TypeVar

from treepiece.errors import OptionError

_Member = TypeVar("_Member", bound=StrEnum)


def whole_number(name: str, value: SupportsIndex, least: int, most: int | None = None) -> int:
    """Return an integer, which may be numpy's, as an `int`; raise if it is not one or out of range.

    >>> whole_number("beam", 5, least=1)
    5
    """
    number: int | None = None
    if type(value) is int:  # the common case; checking for `__index__` takes much longer
        number = value
    elif isinstance(value, SupportsIndex) and not isinstance(value, bool):
        number = value.__index__()
    if number is None or number < least or (most is not None and number > most):
        limit = f"{least} or more" if most is None else f"from {least} to {most:,}"
        raise OptionError(f"{name} must be a whole number, {limit}, got {value!r}")
    return number


def one_of(name: str, value: str, kind: type[_Member]) -> _Member:
    """Return the enumeration member with this value; raise with the choices if there is none."""
    try:
        return kind(value)
    except ValueError:
        raise OptionError(f"{name} must be one of {', '.join(kind)}, got {value!r}") from None


def fraction(name: str, value: float) -> float:
    """Return a number from 0 to 1 as a `float`; raise if it is not one.

    >>> fraction("dropout", 0.1)
    0.1
    """
    if isinstance(value, bool) or not (isinstance(value, int | float) and 0 <= value <= 1):
        raise OptionError(f"{name} must be a number from 0 to 1, got {value!r}")
    return float(value)
