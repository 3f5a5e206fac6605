"""Alignment of words, subwords and characters.

A frame points at words, a model at subwords, and a user reads characters. All three are half-open ranges over one
utterance, and the character offsets of words and subwords convert one into another.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from treepiece.errors import FrameError


class Span(NamedTuple):
    """A half-open range of words, subwords or characters."""

    start: int
    end: int


_WORD = re.compile(r"\S+")
_start, _end = attrgetter("start"), attrgetter("end")


def covered(offsets: Sequence[Span], span: Span, end: int) -> Span:
    """Return the characters of a range of words or subwords.

    An empty range is placed where the next word begins or, after the last word, at `end`.

    >>> covered([Span(0, 2), Span(3, 5), Span(6, 8)], Span(1, 3), end=8)
    Span(start=3, end=8)
    """
    if span.start < span.end:
        return Span(offsets[span.start].start, offsets[span.end - 1].end)
    place = offsets[span.start].start if span.start < len(offsets) else end
    return Span(place, place)


def covering(offsets: Sequence[Span], chars: Span) -> Span:
    """Return the words or subwords that a range of characters overlaps; the inverse of `covered`.

    >>> covering([Span(0, 2), Span(3, 5), Span(6, 8)], Span(4, 7))
    Span(start=1, end=3)
    """
    start = bisect_right(offsets, chars.start, key=_end)
    end = bisect_left(offsets, chars.end, key=_start)
    return Span(start, max(start, end)) if chars.start < chars.end else Span(start, start)


def in_order(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans without overlaps: the first of two keeps what they share.

    >>> list(in_order([Span(0, 2), Span(1, 3)]))
    [Span(start=0, end=2), Span(start=2, end=3)]
    """
    taken = 0
    for start, end in spans:
        yield Span(max(start, taken), max(end, taken))
        taken = max(end, taken)


def cut_words(text: str, cuts: Sequence[int]) -> tuple[Span, ...]:
    """Return the words of a text: split at whitespace, and at the given character positions.

    >>> cut_words("at 8am", [4])
    (Span(start=0, end=2), Span(start=3, end=4), Span(start=4, end=6))
    """
    words: list[Span] = []
    places = sorted(set(cuts))
    for word in _WORD.finditer(text):
        start, end = word.span()
        inside = places[bisect_right(places, start) : bisect_left(places, end)]
        words += map(Span._make, pairwise((start, *inside, end)))
    return tuple(words)


def align_words(utterance: str, words: Sequence[str]) -> tuple[Span, ...]:
    """Return the characters that each word covers in the utterance.

    Utterance and words must be equal up to whitespace. They may be split differently: a parse writes `what 's` for
    "what's", and a word may contain whitespace that the user typed.

    >>> align_words("what's  up", ["what", "'s", "up"])
    (Span(start=0, end=4), Span(start=4, end=6), Span(start=8, end=10))
    """
    offsets = []
    place = 0
    for word in words:
        place = _skip_blanks(utterance, place, until=word[:1])
        is_there = utterance.startswith(word, place)
        end = place + len(word) if is_there else _match_across_blanks(utterance, place, word)
        offsets.append(Span(place, end))
        place = end
    rest = utterance[place:].lstrip()
    if rest:
        raise FrameError(
            f"character {len(utterance) - len(rest) + 1} of the utterance: {rest[:20]!r} is not in the parse: "
            "the parse must contain every word of the utterance"
        )
    return tuple(offsets)


def _skip_blanks(text: str, place: int, until: str) -> int:
    """Return the first position that is not whitespace, or where `until`, which may be whitespace itself, begins."""
    while place < len(text) and text[place].isspace() and not text.startswith(until, place):
        place += 1
    return place


def _match_across_blanks(utterance: str, place: int, word: str) -> int:
    for char in word:
        place = _skip_blanks(utterance, place, until=char)
        if not utterance.startswith(char, place):
            found = utterance[place : place + len(word)]
            raise FrameError(
                f"character {place + 1} of the utterance: the parse has {word!r} where the utterance "
                f"{f'has {found!r}' if found else 'ends'}: they must be equal up to whitespace"
            )
        place += 1
    return place
