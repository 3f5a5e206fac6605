"""Errors as clients see them: problem objects (RFC 9457), with the messages of the library.

    {"type": "/docs#queue-full", "title": "The queue is full", "status": 503, "detail": "...", "request_id": "..."}

`type` is for programs, and links to a remedy. `detail` is for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = {"Retry-After": "1"}
_MAX_DETAIL = 600
"""The maximum length of `detail`: messages quote the input, which may be a megabyte."""


class ProblemType(Enum):
    """The kinds of problems: name, status, title, and what a client should do."""

    BROKEN_JSON = "broken-json", 400, "The body is not JSON", "Send one JSON object in UTF-8."
    NO_TOKEN = "no-token", 401, "The token is missing or wrong", "Send the header `Authorization: Bearer TOKEN`."
    NOT_FOUND = "not-found", 404, "No such path", "Look up the path on this page."
    WRONG_METHOD = "wrong-method", 405, "The method is not allowed", "Use a method that the header `Allow` names."
    SLOW_REQUEST = "slow-request", 408, "The body took too long to arrive", "Send it again, faster."
    NO_UNITS = "no-units", 409, "The model has no units", "Serve a TreePiece model: the baselines have no tokenizer."
    TOO_LARGE = "too-large", 413, "The body is too large", "Send fewer texts at a time, or raise `--max-bytes`."
    WRONG_TYPE = "wrong-type", 415, "The body has the wrong type", "Send `Content-Type: application/json`."
    BAD_INPUT = "bad-input", 422, "The input is invalid", "Do what `detail` says; the same request fails again."
    FAULT = "fault", 500, "Internal error", "Report it, with `request_id`."
    QUEUE_FULL = "queue-full", 503, "The queue is full", "Retry after the seconds of `Retry-After`."
    NO_ANSWER = "no-answer", 503, "There was no answer in time", "Retry after the seconds of `Retry-After`."
    TOO_MANY = "too-many-requests", 503, "Too many requests are under way", "Retry after the seconds of `Retry-After`."
    STOPPING = "stopping", 503, "The server is stopping", "Ask another server."

    def __init__(self, slug: str, status: int, title: str, remedy: str) -> None:
        self.slug = slug
        self.status = status
        self.title = title
        self.remedy = remedy

    def to_json(self, detail: str, request_id: str) -> bytes:
        """Return the problem object as JSON values."""
        detail = detail if len(detail) <= _MAX_DETAIL else f"{detail[:_MAX_DETAIL]}…"
        value = {"type": f"/docs#{self.slug}", "title": self.title, "status": self.status, "detail": detail}
        return json.dumps(value | {"request_id": request_id}).encode()


class Problem(Exception):
    """Ends a request with a problem object."""

    def __init__(self, kind: ProblemType, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = headers or {}
