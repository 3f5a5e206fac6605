"""How a server behaves: what it takes, how long it waits, and what it asks of its clients.

Nothing here needs the extra `serve`, so that `treepiece serve --help` works without it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from urllib.parse import urlsplit

from treepiece.errors import OptionError
from treepiece.options import whole_number

_WHOLE = ("batch_size", "queue", "most_bytes", "most_texts", "most_characters", "most_readings", "connections")
_SECONDS = ("answer_seconds", "body_seconds", "head_seconds", "idle_seconds", "stop_seconds")
_MOST_SECONDS = 3600


@dataclass(frozen=True)
class Settings:
    """Everything that can be set beside the model and the address; an `OptionError` names what is out of range.

    What is too much is refused before it costs anything: the body by its size, then the texts by their number and
    length, then the request if the queue has no room for it.
    """

    batch_size: int = 32
    """How many readings are computed together at most: those of so many texts with an `nbest` of 1."""
    batch_wait: float = 1.0
    """How many milliseconds a text waits at most for others to be parsed with, while the parser has nothing to do."""
    queue: int = 1024
    """How many readings may wait, a text with as many as its `nbest`; what does not fit is refused with 503.

    Here, in a batch and in `most_readings` a reading of a long text counts once for every 100 characters: time and
    memory grow with the length, and so does the answer, in which every reading quotes the text.
    """

    most_bytes: int = 1 << 19
    """The largest body; every connection may have one in memory."""
    most_texts: int = 128
    """How many texts one request may have."""
    most_characters: int = 10_000
    """The longest text, and the longest tree."""
    most_readings: int = 1_000
    """How many readings one request may ask for, its texts times its `nbest`; never more than the queue takes.

    This bounds the work of a request: characters times `nbest` are at most 100 times as many.
    """
    connections: int = 512
    """How many connections may be open; one more is refused with 503."""

    answer_seconds: float = 30.0
    """How long a request may take from its last byte to its answer, and how long a client to read it."""
    body_seconds: float = 10.0
    """How long a body may take to arrive."""
    head_seconds: float = 10.0
    """How long the head of a request may take to arrive, and how long a body that nobody reads."""
    idle_seconds: float = 30.0
    """How long a connection is kept open without a request."""
    drain_seconds: float = 0.0
    """How long the server goes on after SIGTERM while `/readyz` says that it stops, for load balancers to see."""
    stop_seconds: float = 45.0
    """How long what was accepted may take to finish after that."""

    token: str | None = None
    """What clients must send as `Authorization: Bearer ...`; None lets everybody in."""
    origins: tuple[str, ...] = ()
    """The web sites whose pages may call the server (CORS); `*` is all of them."""
    log_texts: bool = False
    """Whether the log has the texts of requests."""

    def __post_init__(self) -> None:
        for name in _WHOLE:
            whole_number(name, getattr(self, name), 1)
        object.__setattr__(self, "most_readings", min(self.most_readings, self.queue))
        _number("batch_wait", self.batch_wait, 0, 10_000)
        for name in _SECONDS:
            _number(name, getattr(self, name), 0.001, _MOST_SECONDS)
        _number("drain_seconds", self.drain_seconds, 0, _MOST_SECONDS)
        if self.token is not None and not _is_token(self.token):
            raise OptionError(
                "the token must be one or more ASCII characters without blanks; make one with "
                '`python -c "import secrets; print(secrets.token_urlsafe(32))"`'
            )
        for origin in self.origins:
            if origin != "*" and not _is_origin(origin):
                raise OptionError(f"an origin is like https://example.org, without a path, or *, got {origin!r}")


def _is_token(text: str) -> bool:
    return text.isascii() and text.isprintable() and bool(text) and " " not in text


def _is_origin(text: str) -> bool:
    """Return whether a browser could send this as its origin: a scheme, a host, perhaps a port, and nothing else."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is no number, or brackets around what is no address
        return False
    if not host or parts.scheme not in ("http", "https"):
        return False
    name = f"[{host}]" if ":" in host else host
    return text == f"{parts.scheme}://{name}" + ("" if port is None else f":{port}")


def _number(name: str, value: float, least: float, most: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not least <= value <= most:
        raise OptionError(f"{name} must be a number from {least:g} to {most:,}, got {value!r}")
