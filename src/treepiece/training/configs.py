"""Settings read from nested mappings, such as YAML, into dataclasses, with every name and type checked."""

from __future__ import annotations

import types
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from treepiece.errors import RecipeError, TreepieceError

T = TypeVar("T")


def read_config(kind: type[T], value: object, where: str = "") -> T:
    """Return a dataclass from a mapping; `where` is the name of the mapping, for errors.

    >>> from treepiece.tokenizer.config import TokenizerConfig
    >>> read_config(TokenizerConfig, {"merges": 100}).merges
    100
    >>> read_config(TokenizerConfig, {"merge": 100}, "tokenizer")
    Traceback (most recent call last):
    treepiece.errors.RecipeError: tokenizer.merge: there is no such setting; did you mean merges?
    """
    if not isinstance(value, Mapping):
        raise RecipeError(f"{where or 'the recipe'}: expected settings by name, got {value!r:.60}")
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind) if field.init]  # type: ignore[arg-type]
    for name in value:
        if name not in names:
            close = get_close_matches(str(name), names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
            raise RecipeError(f"{_inside(where, name)}: there is no such setting; {hint}")
    settings = {name: _read(hints[name], item, _inside(where, name)) for name, item in value.items()}
    try:
        return kind(**settings)
    except TreepieceError as error:
        raise RecipeError(f"{where}: {error}" if where else str(error)) from None
    except TypeError as error:
        raise RecipeError(f"{where or 'the recipe'}: {str(error).partition(') ')[2] or error}") from None


def write_config(config: object) -> Any:  # noqa: ANN401  # as JSON has it
    """Return a dataclass as plain values that `read_config` reads."""
    if is_dataclass(config):
        return {field.name: write_config(getattr(config, field.name)) for field in fields(config)}
    if isinstance(config, Mapping):
        return {name: write_config(item) for name, item in config.items()}
    return str(config) if isinstance(config, Enum) else config


def _inside(where: str, name: object) -> str:
    return f"{where}.{name}" if where else str(name)


def _read(hint: Any, value: object, where: str) -> Any:  # noqa: ANN401  # a type, and a value of it
    if is_dataclass(hint):
        return read_config(hint, value, where)  # type: ignore[arg-type]
    if get_origin(hint) in (Union, types.UnionType):
        if value is None:
            return None
        (hint,) = (choice for choice in get_args(hint) if choice is not type(None))
        return _read(hint, value, where)
    if get_origin(hint) in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise RecipeError(f"{where}: expected values by name, got {value!r:.60}")
        return {str(name): _read(get_args(hint)[1], item, _inside(where, name)) for name, item in value.items()}
    return _read_plain(hint, value, where)


def _read_plain(kind: type, value: object, where: str) -> object:
    if issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            raise RecipeError(f"{where}: expected one of {', '.join(map(str, kind))}, got {value!r:.60}") from None
    if kind is float and isinstance(value, str):  # YAML reads 1e-4 as a text: it wants 1.0e-4
        with suppress(ValueError):
            value = float(value)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
        raise RecipeError(f"{where}: expected {names[kind]}, got {value!r:.60}")
    return value
