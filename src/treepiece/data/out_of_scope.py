"""Requests that a parser was not trained for: those of a user's file, or those that come with treepiece.

`out_of_scope.tsv` has 11,200 requests to an assistant about banking, travel, cooking, small talk and more, from
CLINC150 (Larson et al., 2019, CC BY 3.0), without the intents near to the domains of TOPv2.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from treepiece.data.rows import decode_line
from treepiece.errors import DataError

_SHOWN = 3


class Request(NamedTuple):
    """A request, and the group of similar requests that it belongs to; empty if the file has no groups."""

    text: str
    group: str = ""


def read_requests(file: str | Path) -> list[Request]:
    """Return the requests of a file: one per line, or `request <tab> group`."""
    try:
        lines = Path(file).read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None
    found = []
    for number, raw in enumerate(lines, start=1):
        try:
            text, _, group = decode_line(raw, is_first=number == 1).partition("\t")
        except DataError as error:
            raise DataError(f"{file}, line {number}: {error}") from None
        if text.strip():
            found.append(Request(text, group))
    if not found:
        raise DataError(f"{file}: there are no requests in it: expected one per line")
    return found


@cache
def bundled_requests() -> tuple[Request, ...]:
    """Return the requests that come with treepiece.

    >>> len(bundled_requests()), bundled_requests()[0].group
    (11200, 'translate')
    """
    return tuple(read_requests(Path(str(files("treepiece.data").joinpath("out_of_scope.tsv")))))


def check_scope(requests: Sequence[Request], utterances: Collection[str], file: str | Path) -> None:
    """Raise if a request is an utterance of the training rows, too, up to case and blanks.

    >>> check_scope([Request("Wake me")], ["wake  me"], "other.txt")
    Traceback (most recent call last):
    treepiece.errors.DataError: other.txt: in scope, because training rows have them, too: 'Wake me' (1 in all)
    """
    known = set(map(normalized, utterances))
    both = [request.text for request in requests if normalized(request.text) in known]
    if both:
        shown = ", ".join(f"{text!r:.60}" for text in both[:_SHOWN]) + (", ..." if len(both) > _SHOWN else "")
        raise DataError(f"{file}: in scope, because training rows have them, too: {shown} ({len(both):,} in all)")


def normalized(text: str) -> str:
    """Return a text in lower case, with single blanks.

    >>> normalized("Wake  me")
    'wake me'
    """
    return " ".join(text.lower().split())
