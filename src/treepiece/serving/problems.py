"""Errors as clients see them: problem objects (RFC 9457), worded as the library words them.

    {"type": "/docs#queue-full", "title": "The queue is full", "status": 503, "detail": "...", "request_id": "..."}

`type` tells programs what happened, and is the place in the server's own reference that says what to do. `detail` is
the library's message, for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum

from treepiece.errors import FrameError, OptionError, TextError, TreeParseError, UnitError

MEDIA_TYPE = "application/problem+json"
LONGEST_DETAIL = 600
"""Messages quote what they complain of; a client that sends a megabyte need not get it back."""
_OF_INPUT = (TextError, OptionError, TreeParseError, FrameError, UnitError)


class ProblemType(Enum):
    """What can go wrong: name, status, title, and what a client should do."""

    BROKEN_REQUEST = "broken-request", 400, "The request is not HTTP/1.1", "Fix the client, or what is in between."
    BROKEN_JSON = "broken-json", 400, "The body is not JSON", "Send one JSON object in UTF-8."
    NO_TOKEN = "no-token", 401, "The token is missing or wrong", "Send the header `Authorization: Bearer TOKEN`."
    NOT_FOUND = "not-found", 404, "There is nothing here", "Look the path up on this page."
    WRONG_METHOD = "wrong-method", 405, "The method is wrong", "Use a method that the header `Allow` names."
    SLOW_REQUEST = "slow-request", 408, "The request took too long to arrive", "Send it again, faster."
    NO_UNITS = "no-units", 409, "The model has no units", "Serve a TreePiece model: the baselines have no tokenizer."
    TOO_LARGE = "too-large", 413, "The body is too large", "Send fewer texts at a time, or have the limit raised."
    WRONG_TYPE = "wrong-type", 415, "The body is of another type", "Send `Content-Type: application/json`."
    BAD_INPUT = "bad-input", 422, "The input cannot be used", "Do what `detail` says; the same again fails again."
    FAULT = "fault", 500, "A fault in the server", "Report it, with `request_id`."
    QUEUE_FULL = "queue-full", 503, "The queue is full", "Send it again after the seconds of `Retry-After`."
    NO_ANSWER = "no-answer", 503, "There was no answer in time", "Send it again after the seconds of `Retry-After`."
    TOO_MANY = "too-many-connections", 503, "There are too many connections", "Use fewer, and keep them open."
    STOPPING = "stopping", 503, "The server is stopping", "Ask another server."

    def __init__(self, slug: str, status: int, title: str, remedy: str) -> None:
        self.slug = slug
        self.status = status
        self.title = title
        self.remedy = remedy

    def to_json(self, detail: str, request_id: str) -> bytes:
        """Return the problem object as it is sent."""
        value = {"type": f"/docs#{self.slug}", "title": self.title, "status": self.status, "detail": _shorten(detail)}
        return json.dumps(value | {"request_id": request_id}).encode()


class Problem(Exception):
    """Ends a request with a problem object."""

    def __init__(self, kind: ProblemType, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = headers or {}


class ClientLeftError(Exception):
    """Ends a request whose client has gone: there is nobody to answer."""


def of_input(error: Exception) -> Exception:
    """Return the problem that the library's complaint about an input is; any other error as it is."""
    return Problem(ProblemType.BAD_INPUT, str(error)) if isinstance(error, _OF_INPUT) else error


def _shorten(detail: str) -> str:
    return detail if len(detail) <= LONGEST_DETAIL else f"{detail[:LONGEST_DETAIL]}…"
