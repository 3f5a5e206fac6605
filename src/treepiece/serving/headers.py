"""Headers that every answer has, and those that let pages of other sites call the server (CORS)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.types import Scope

from treepiece.serving.limits import header

Headers = list[tuple[bytes, bytes]]

POLICY = b"content-security-policy"
NOTHING = b"default-src 'none'; frame-ancestors 'none'"
"""An answer of JSON is no page: whoever opens it as one gets nothing to run."""
OWN_FILES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A page has what this server serves, and nothing from elsewhere."""

_ALWAYS: Headers = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
_UNLESS_SET: Headers = [(POLICY, NOTHING), (b"cache-control", b"no-store")]


def with_security(headers: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Return the headers of an answer with those that keep browsers from misusing it."""
    names = {name for name, _ in headers}
    return [*headers, *_ALWAYS, *(pair for pair in _UNLESS_SET if pair[0] not in names)]


class Cors:
    """Which sites' pages may call the server; by default none."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origins)

    def headers(self, scope: Scope) -> Headers:
        """Return what lets the page that sent a request read the answer."""
        if not self._origins:
            return []
        vary = (b"vary", b"Origin")
        origin = header(scope, b"origin")
        if origin is None or not self._origins & {origin, "*"}:
            return [vary]
        exposed = b"Retry-After, X-Request-ID"
        return [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", exposed),
            vary,
        ]

    def preflight(self, scope: Scope) -> Headers | None:
        """Return the answer to a browser that asks whether a page may call; None if that is not what it asks."""
        if scope["method"] != "OPTIONS" or header(scope, b"access-control-request-method") is None:
            return None
        allowed = self.headers(scope)
        if len(allowed) <= 1:
            return None
        return [
            *allowed,
            (b"access-control-allow-methods", b"GET, POST"),
            (b"access-control-allow-headers", b"Authorization, Content-Type, X-Request-ID"),
            (b"access-control-max-age", b"600"),
        ]
