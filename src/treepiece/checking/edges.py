"""The edges of spans: words that are cut, and text at an edge that is rarely a part of a value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from treepiece.trees.frame import Frame, Leaf

_MARKS = r"[?!,;:…]"
_POLITE = r"(?:please|thanks|thank you)"
_ENDS = (
    ("punctuation", re.compile(rf"{_MARKS}\s*$"), re.compile(rf"\s*{_MARKS}")),
    # A full stop also ends abbreviations: it is stray only at the end of an utterance, in a word without another.
    ("a full stop", re.compile(r"(?:^|\s)[^\s.]*\s?\.$"), re.compile(r"\s?\.\s*$")),
    ("a polite word", re.compile(rf"\b{_POLITE}$", re.IGNORECASE), re.compile(rf"\s*\b{_POLITE}\b", re.IGNORECASE)),
)
"""Each kind of text at the end of a span: where it is inside, and where it follows the span."""
_START = re.compile(_MARKS)


_BLANK = "a blank"


class Edge(NamedTuple):
    """The text at the edge of a span: its kind, and whether it is inside the span or next to it."""

    leaf: Leaf
    text: str
    is_inside: bool

    @property
    def may_belong(self) -> bool:
        """Whether some labels may include such text everywhere."""
        return self.text != _BLANK


def cut_words(frame: Frame) -> Iterator[Leaf]:
    """Yield the leaves that begin or end inside a word: between two letters, or between two digits.

    A number and its unit, or a word and its ending after an apostrophe, are words of their own. Only letters with a
    case count, because other scripts, such as Chinese, write no blanks between words.

    >>> frame = Frame.from_brackets("[IN:A wake me to [SL:B morrow at 8 ] am ]", "wake me tomorrow at 8am")
    >>> [leaf.text for leaf in cut_words(frame)]
    ['morrow at 8']
    """
    text = frame.utterance
    for leaf in frame.leaves:
        start, end = leaf.chars
        if start < end and (_is_cut(text, start) or _is_cut(text, end)):
            yield leaf


def _is_cut(text: str, place: int) -> bool:
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    return (before.isdecimal() and after.isdecimal()) or (_has_case(before) and _has_case(after))


def _has_case(char: str) -> bool:
    return char.isupper() or char.islower()


def stray_edges(frame: Frame) -> Iterator[Edge]:
    """Yield the text at the edges of leaves that may be stray, inside the leaf or next to it.

    Both are told, because some labels, such as those of messages, include such text everywhere: then it belongs there.

    >>> frame = Frame.from_brackets("[IN:A wake [SL:B anna ] , [SL:C at 8 please ] ]")
    >>> [(edge.leaf.label, edge.text, edge.is_inside) for edge in stray_edges(frame)]
    [('SL:B', 'punctuation', False), ('SL:C', 'a polite word', True)]
    """
    for leaf in frame.leaves:
        start, end = leaf.chars
        if start == end:
            continue
        if leaf.text != leaf.text.strip():
            yield Edge(leaf, _BLANK, True)
        if _START.match(leaf.text):
            yield Edge(leaf, "punctuation at the start", True)
        for name, inside, after in _ENDS:
            is_last = not frame.utterance[end:].strip()
            if inside.search(leaf.text) and (is_last or name != "a full stop"):
                yield Edge(leaf, name, True)
            elif after.match(frame.utterance, end):
                yield Edge(leaf, name, False)
