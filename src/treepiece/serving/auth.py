"""The token that clients must have, where one is set."""

from __future__ import annotations

import hashlib
import hmac

from starlette.types import Scope

from treepiece.serving.limits import header, own_path
from treepiece.serving.problems import Problem, ProblemType

OPEN = frozenset(("/livez", "/readyz", "/docs", "/openapi.json"))
"""What needs no token, beside the files of the page: health checks and the reference say nothing of what users do."""


class Guard:
    """Lets requests with the token pass, and those for open paths. A path that nobody thought of needs the token.

    Digests are compared, in constant time: how long it takes tells nothing, not even the length of the token.
    """

    def __init__(self, token: str | None, open_paths: frozenset[str] = OPEN) -> None:
        self._open = open_paths
        self._digest = None if token is None else _digest(token)

    def check(self, scope: Scope) -> None:
        """Raise if a request needs the token and does not have it."""
        if self._digest is None or own_path(scope) in self._open:
            return
        kind, _, token = (header(scope, b"authorization") or "").partition(" ")
        if not hmac.compare_digest(_digest(token.strip()), self._digest) or kind.lower() != "bearer":
            raise Problem(
                ProblemType.NO_TOKEN,
                "this server wants a token: send it as `Authorization: Bearer TOKEN`",
                {"WWW-Authenticate": 'Bearer realm="treepiece"'},
            )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("latin-1", errors="replace")).digest()
