"""Assembly of units (Section 2.3.2 of the paper): from a sequence of units to a tree or to placeholder nests.

In pre-order each unit fills the first open placeholder, depth first. In level order the placeholders of a unit are
filled before those of the units below it. Either order determines the tree.

A *placeholder nest* makes explicit what fills a placeholder (Appendix E of the paper, for pretraining unit embeddings):
the symbol of the placeholder is followed by its content in brackets. If U1 has two placeholders, filled by U2 and U3,
and U3 has one, filled by U4, the sequence U1 U2 U3 U4 becomes

    U1 _ ( U2 ) _ ( U3 _ ( U4 ) )

A unit is encoded as its id; the placeholder and the brackets are the three numbers after the last id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import SupportsIndex

from treepiece.errors import UnitError
from treepiece.tokenizer.folding import unfold
from treepiece.tokenizer.shape import PLACEHOLDER, build_node
from treepiece.tokenizer.vocabulary import Vocabulary
from treepiece.trees.node import Node


class Order(StrEnum):
    """The order of the units of a tree."""

    PRE = "pre"
    LEVEL = "level"


def assemble(unit_ids: Sequence[int], vocabulary: Vocabulary, order: Order) -> Node:
    """Return the tree that the units form; raise if they do not form exactly one."""
    return build_node((token for token, _ in _tokens(unit_ids, vocabulary, order)), vocabulary.labels)


def unit_places(unit_ids: Sequence[int], vocabulary: Vocabulary, order: Order) -> list[int]:
    """Return the index of the unit of each node, for the nodes of the assembled tree in pre-order."""
    return [index for token, index in _tokens(unit_ids, vocabulary, order) if token >= 0]


def fill_placeholders(unit_ids: Sequence[int], vocabulary: Vocabulary, order: Order) -> list[list[int]]:
    """Return, for each unit of the sequence, the indices of the units that fill its placeholders."""
    unit_ids = _check_ids(unit_ids, len(vocabulary))
    n_placeholders = [vocabulary.n_placeholders[unit_id] for unit_id in unit_ids]
    fillers: list[list[int]] = [[] for _ in n_placeholders]
    waiting: deque[int] = deque()  # units with open placeholders, of which the first is filled next
    wait = waiting.append if order is Order.LEVEL else waiting.appendleft
    for index, n in enumerate(n_placeholders):
        if waiting:
            above = waiting[0]
            fillers[above].append(index)
            if len(fillers[above]) == n_placeholders[above]:
                waiting.popleft()
        elif index:
            raise UnitError(
                f"units left over: the tree is complete after {index} of {len(unit_ids)} units; "
                f"remove unit {unit_ids[index]} at index {index} and what follows"
            )
        if n:
            wait(index)
    n_open = 1 + sum(n_placeholders) - len(unit_ids)
    if n_open:
        are_open = "1 placeholder is" if n_open == 1 else f"{n_open} placeholders are"
        raise UnitError(f"too few units: {are_open} still open after {len(unit_ids)} units; add units")
    return fillers


def _check_ids(unit_ids: Sequence[SupportsIndex], n_units: int) -> list[int]:
    """Return the ids, which may be numpy integers, as `int`; raise if one is not the id of a unit."""
    checked = []
    for index, unit_id in enumerate(unit_ids):
        if isinstance(unit_id, bool) or not isinstance(unit_id, SupportsIndex):
            raise UnitError(f"the unit id at index {index} must be a whole number, got {unit_id!r}")
        number = unit_id.__index__()
        if not 0 <= number < n_units:
            raise UnitError(f"unit id {number} at index {index} is out of range: ids go from 0 to {n_units - 1}")
        checked.append(number)
    return checked


def _tokens(unit_ids: Sequence[int], vocabulary: Vocabulary, order: Order) -> Iterator[tuple[int, int]]:
    """Yield the tokens of the assembled tree, each with the index of its unit."""
    fillers = fill_placeholders(unit_ids, vocabulary, order)
    return unfold(_fill(unit_ids, fillers, vocabulary), vocabulary.widths.continuation)


def _fill(unit_ids: Sequence[int], fillers: list[list[int]], vocabulary: Vocabulary) -> Iterator[tuple[int, int]]:
    shapes = vocabulary.shapes
    path = [(0, iter(shapes[unit_ids[0]]), iter(fillers[0]))]
    while path:
        index, tokens, below = path[-1]
        for token in tokens:
            if token == PLACEHOLDER:
                filler = next(below)
                path.append((filler, iter(shapes[unit_ids[filler]]), iter(fillers[filler])))
                break
            yield token, index
        else:
            path.pop()


@dataclass(frozen=True)
class NestSymbols:
    """The numbers of the three symbols of placeholder nests."""

    placeholder: int
    opening: int
    closing: int

    @classmethod
    def after(cls, n_units: int) -> NestSymbols:
        """Return the symbols of a vocabulary of `n_units` units."""
        return cls(n_units, n_units + 1, n_units + 2)


def write_nests(unit_ids: Sequence[int], vocabulary: Vocabulary) -> list[int]:
    """Return a pre-order sequence of units with placeholder nests."""
    symbols = NestSymbols.after(len(vocabulary))
    fillers = fill_placeholders(unit_ids, vocabulary, Order.PRE)
    result = [unit_ids[0]]
    path = [iter(fillers[0])]
    while path:
        index = next(path[-1], None)
        if index is None:
            path.pop()
            if path:
                result.append(symbols.closing)
        else:
            result += [symbols.placeholder, symbols.opening, unit_ids[index]]
            path.append(iter(fillers[index]))
    return result
