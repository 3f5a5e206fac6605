"""Puts units together again: which unit fills which placeholder, and the tree that comes out.

A sequence of units is read in pre-order (each unit fills the first open placeholder, depth first) or in level order (a
unit's placeholders are filled before those of the units below it). Both are unique.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import SupportsIndex

from treepiece.errors import UnitError
from treepiece.tokenizer.folding import unfold
from treepiece.tokenizer.shape import HOLE, build_node
from treepiece.tokenizer.vocabulary import Vocabulary
from treepiece.trees.node import Node


class Order(StrEnum):
    """The order in which units are written."""

    PRE = "pre"
    LEVEL = "level"


def assemble(unit_ids: Sequence[int], vocabulary: Vocabulary, order: Order) -> Node:
    """Return the tree that the units make; raise where they do not make exactly one."""
    return build_node((token for token, _ in _steps(unit_ids, vocabulary, order)), vocabulary.labels)


def unit_places(unit_ids: Sequence[int], vocabulary: Vocabulary, order: Order) -> list[int]:
    """Return, for each node of the tree that the units make, in pre-order, the place of its unit in the sequence."""
    return [place for token, place in _steps(unit_ids, vocabulary, order) if token >= 0]


def fill_placeholders(unit_ids: Sequence[int], vocabulary: Vocabulary, order: Order) -> list[list[int]]:
    """Return, for each unit of the sequence, the places in the sequence of the units that fill its placeholders."""
    unit_ids = check_ids(unit_ids, len(vocabulary))
    n_holes = [vocabulary.n_holes[unit_id] for unit_id in unit_ids]
    n_open = 1
    for place, holes in enumerate(n_holes):
        if not n_open:
            raise UnitError(
                f"units left over: the tree is complete after {place} of {len(unit_ids)} units; "
                f"remove unit {unit_ids[place]} at place {place} and what follows"
            )
        n_open += holes - 1
    if n_open:
        raise UnitError(f"too few units: {n_open} placeholders are still open after {len(unit_ids)} units; add units")
    return _fill_level_order(n_holes) if order is Order.LEVEL else _fill_pre_order(n_holes)


def check_ids(unit_ids: Sequence[SupportsIndex], n_units: int) -> list[int]:
    """Return the ids, which may be numpy's, as plain numbers; raise unless every one is that of a unit."""
    checked = []
    for place, unit_id in enumerate(unit_ids):
        if isinstance(unit_id, bool) or not isinstance(unit_id, SupportsIndex):
            raise UnitError(f"the unit id at place {place} must be a whole number, got {unit_id!r}")
        number = unit_id.__index__()
        if not 0 <= number < n_units:
            raise UnitError(f"unit id {number} at place {place} is out of range: ids go from 0 to {n_units - 1}")
        checked.append(number)
    return checked


def _fill_level_order(n_holes: Sequence[int]) -> list[list[int]]:
    fillers = []
    following = 1
    for holes in n_holes:
        fillers.append(list(range(following, following + holes)))
        following += holes
    return fillers


def _fill_pre_order(n_holes: Sequence[int]) -> list[list[int]]:
    fillers: list[list[int]] = [[] for _ in n_holes]
    waiting: list[int] = []  # units with open placeholders, the innermost last
    for place, holes in enumerate(n_holes):
        if waiting:
            above = waiting[-1]
            fillers[above].append(place)
            if len(fillers[above]) == n_holes[above]:
                waiting.pop()
        if holes:
            waiting.append(place)
    return fillers


def _steps(unit_ids: Sequence[int], vocabulary: Vocabulary, order: Order) -> Iterator[tuple[int, int]]:
    """Yield the tokens of the whole tree, each with the place of its unit in the sequence."""
    fillers = fill_placeholders(unit_ids, vocabulary, order)
    return unfold(_expand(unit_ids, fillers, vocabulary), vocabulary.widths.continuation)


def _expand(unit_ids: Sequence[int], fillers: list[list[int]], vocabulary: Vocabulary) -> Iterator[tuple[int, int]]:
    shapes = vocabulary.shapes
    path = [(0, iter(shapes[unit_ids[0]]), iter(fillers[0]))]
    while path:
        place, tokens, below = path[-1]
        for token in tokens:
            if token == HOLE:
                filler = next(below)
                path.append((filler, iter(shapes[unit_ids[filler]]), iter(fillers[filler])))
                break
            yield token, place
        else:
            path.pop()
