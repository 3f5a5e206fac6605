"""Unit sequences written with placeholder nests, the corpus for pretraining unit embeddings (Appendix E of the paper).

A unit is one symbol. Each of its placeholders follows as a symbol of its own, and after it, in brackets, what fills it:

    U1 with two placeholders, filled by U2 and by U3, which has one filled by U4:   U1 _ ( U2 ) _ ( U3 _ ( U4 ) )

As numbers, a unit is its id, and the three symbols come after the last unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treepiece.errors import UnitError
from treepiece.tokenizer.assembly import Order, fill_placeholders
from treepiece.tokenizer.vocabulary import Vocabulary


@dataclass(frozen=True)
class NestSymbols:
    """The numbers of the three symbols beside the units."""

    placeholder: int
    opening: int
    closing: int

    @classmethod
    def after(cls, n_units: int) -> NestSymbols:
        """Return the symbols of a vocabulary of `n_units` units."""
        return cls(n_units, n_units + 1, n_units + 2)


def write_nests(unit_ids: Sequence[int], vocabulary: Vocabulary) -> list[int]:
    """Return a pre-order sequence of units with its placeholder nests."""
    symbols = NestSymbols.after(len(vocabulary))
    fillers = fill_placeholders(unit_ids, vocabulary, Order.PRE)
    result = [unit_ids[0]]
    path = [iter(fillers[0])]
    while path:
        place = next(path[-1], None)
        if place is None:
            path.pop()
            if path:
                result.append(symbols.closing)
        else:
            result += [symbols.placeholder, symbols.opening, unit_ids[place]]
            path.append(iter(fillers[place]))
    return result


def read_nests(numbers: Sequence[int], vocabulary: Vocabulary) -> list[int]:
    """Return the units of a sequence with placeholder nests, in pre-order; the inverse of `write_nests`."""
    unit_ids = [number for number in numbers if number < len(vocabulary)]
    if write_nests(unit_ids, vocabulary) != list(numbers):
        raise UnitError("the placeholder nests do not fit their units: write them with write_nests")
    return unit_ids
