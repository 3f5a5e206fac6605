"""Where a text of several requests may be cut in two.

    set an alarm for 6 am and play some jazz   ->   set an alarm for 6 am | play some jazz

A cut is at a comma, a semicolon, a full stop, or words such as "and" and "then". The parser tries each, and keeps the
one whose parts it is most confident of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from treepiece.trees.align import Span

MAX_CUTS = 4
"""The maximum number of cuts to try; a text with more is rarely two requests."""
# A run of blanks is tried from its first blank only: from each of them, a long run would take its length squared.
_JOIN = re.compile(r"(?<!\s)(?:\s*[,;.]\s+(?:(?:and|then|also)\s+)*|\s+(?:(?:and|then|also)\s+)+)", re.IGNORECASE)
_EMPTY = re.compile(r"(?:and|then|also|[,;.\s])*", re.IGNORECASE)


class Cut(NamedTuple):
    """The characters of the two parts of a text."""

    first: Span
    second: Span


def cuts(text: str) -> Iterator[Cut]:
    """Return up to `MAX_CUTS` ways to cut a text in two.

    >>> text = "wake me at 6, and then play jazz"
    >>> [[text[slice(*part)] for part in cut] for cut in cuts(text)]
    [['wake me at 6', 'play jazz']]
    """
    found = (Cut(Span(0, join.start()), Span(join.end(), len(text))) for join in _JOIN.finditer(text))
    return islice((cut for cut in found if not any(_EMPTY.fullmatch(text, *part) for part in cut)), MAX_CUTS)
