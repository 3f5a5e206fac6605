"""The settings of a server: limits, time-outs and access. They need no extra, so `treepiece serve --help` works."""

from __future__ import annotations

import math
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from treepiece.checks import whole_number
from treepiece.errors import OptionError

_WHOLE = ("batch_size", "queue", "max_bytes", "max_texts", "max_characters", "max_candidates", "concurrency")
_SECONDS = ("answer_seconds", "body_seconds", "idle_seconds", "stop_seconds")
_MAX_SECONDS = 3600


@dataclass(frozen=True)
class Settings:
    """All settings but the model and the address; an `OptionError` names the one that is out of range.

    Requests beyond the limits are refused before they cost anything: first by the size of the body, then by the number
    and length of the texts, then by the room in the queue.
    """

    batch_size: int = 32
    """The maximum number of candidates in a batch; with an `nbest` of 1, that of texts."""
    batch_wait: float = 1.0
    """The maximum time in milliseconds that a text waits for others to share its batch, while the parser is idle."""
    queue: int = 1024
    """The maximum number of waiting candidates, `nbest` per text; more are refused with 503.

    Here, in a batch and in `max_candidates` a candidate of a long text counts once per 100 characters: time and memory
    grow with the length, and so does the answer, in which every candidate quotes the text.
    """

    max_bytes: int = 1 << 19
    """The maximum size of a body."""
    max_texts: int = 128
    """The maximum number of texts in a request."""
    max_characters: int = 10_000
    """The maximum length of a text or a tree."""
    max_candidates: int = 1_000
    """The maximum number of candidates in a request, its texts times its `nbest`; never more than `queue`."""
    concurrency: int = 512
    """The maximum number of concurrent requests; more are refused with 503. Each may hold a body in memory."""

    answer_seconds: float = 30.0
    """Time limit of an answer, from the last byte of the request, and of a client to read it."""
    body_seconds: float = 10.0
    """Time limit of reading a body."""
    idle_seconds: float = 30.0
    """Idle time of a connection, from an answer to the next request."""
    drain_seconds: float = 0.5
    """How long the server keeps accepting requests after SIGTERM, with `/readyz` at 503, before it closes its port."""
    stop_seconds: float = 45.0
    """Time limit to finish accepted requests after that."""

    token: str | None = None
    """The token that clients must send as `Authorization: Bearer ...`; None admits all clients."""
    allowed_hosts: tuple[str, ...] = ()
    """The host names that clients may use (the header `Host`); an empty tuple allows every name."""
    origins: tuple[str, ...] = ()
    """The sites whose pages may call the server (CORS); `*` allows all."""
    log_texts: bool = False
    """Whether the log contains the texts of requests."""

    def __post_init__(self) -> None:
        for name in _WHOLE:
            whole_number(name, getattr(self, name), 1)
        object.__setattr__(self, "max_candidates", min(self.max_candidates, self.queue))
        _number("batch_wait", self.batch_wait, 0, 10_000)
        for name in _SECONDS:
            _number(name, getattr(self, name), 0.001, _MAX_SECONDS)
        _number("drain_seconds", self.drain_seconds, 0, _MAX_SECONDS)
        if self.token is not None and not _is_token(self.token):
            raise OptionError(
                "the token must be one or more ASCII characters without blanks; make one with "
                '`python -c "import secrets; print(secrets.token_urlsafe(32))"`'
            )
        for host in self.allowed_hosts:
            if not _is_host(host):
                raise OptionError(
                    f"an allowed host is like example.org or *.example.org, without a port, or *, got {host!r}"
                )
        for origin in self.origins:
            if origin != "*" and not _is_origin(origin):
                raise OptionError(f"an origin is like https://example.org, without a path, or *, got {origin!r}")


def _is_token(text: str) -> bool:
    return text.isascii() and text.isprintable() and bool(text) and " " not in text


def _is_host(text: str) -> bool:
    try:
        return bool(ip_address(text.removeprefix("[").removesuffix("]")))
    except ValueError:
        name = text.removeprefix("*.")
        return text == "*" or (_is_token(name) and not set("*/@:") & set(name))


def _is_origin(text: str) -> bool:
    """Return whether a browser could send this as its origin: a scheme, a host, perhaps a port, and nothing else."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is not a number, or brackets around something that is not an address
        return False
    if not host or parts.scheme not in ("http", "https"):
        return False
    name = f"[{host}]" if ":" in host else host
    return text == f"{parts.scheme}://{name}" + ("" if port is None else f":{port}")


def _number(name: str, value: float, least: float, most: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not least <= value <= most:
        raise OptionError(f"{name} must be a number from {least:g} to {most:,}, got {value!r}")
