"""What is kept of utterances: an entry for each, and of those of eval also their signatures."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from treepiece.checking.signatures import SignatureTable


class Entry(NamedTuple):
    """What is kept of an utterance: its first parse (31 bits), whether there are others, and its first place."""

    parse: int
    has_others: bool
    place: int

    def pack(self) -> int:
        """Return the entry as a number of 64 bits."""
        return self.parse << 33 | self.has_others << 32 | self.place & 0xFFFFFFFF

    @classmethod
    def unpack(cls, value: int) -> Entry:
        """Return the entry of a number that `pack` returned."""
        return cls(value >> 33, bool(value >> 32 & 1), value & 0xFFFFFFFF)


class EvalIndex:
    """The eval rows: the signatures of each, and for each signature the first training row that has it, if any."""

    def __init__(self, limit: int) -> None:
        self.places, self.parses, self.signatures, self.ends = (array("Q") for _ in range(4))
        self.hits = SignatureTable(limit)
        self.n_dropped = 0
        self._limit = limit

    def add(self, place: int, parse: int, signatures: Sequence[int]) -> None:
        """Keep an eval row, unless the index is full."""
        if len(self.signatures) + len(signatures) > self._limit:
            self.n_dropped += 1
            return
        self.places.append(place)
        self.parses.append(parse)
        self.signatures.extend(signatures)
        self.ends.append(len(self.signatures))
        for one in signatures:
            self.hits.put(one, 0)

    def mark(self, place: int, signatures: Sequence[int]) -> None:
        """Remember that the training row at a place has these signatures."""
        for one in signatures:
            if self.hits.get(one) == 0:
                self.hits.put(one, place)

    def rows(self) -> Iterator[tuple[int, int, Sequence[int]]]:
        """Yield the place, the parse and the signatures of each row."""
        start = 0
        for place, parse, end in zip(self.places, self.parses, self.ends, strict=True):
            yield place, parse, self.signatures[start:end]
            start = end
