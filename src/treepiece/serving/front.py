"""What every request goes through before and after it is answered: a name, the token, headers, metrics, the log."""

from __future__ import annotations

import logging
import re
from time import perf_counter

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treepiece.serving.auth import Guard
from treepiece.serving.headers import Cors, with_security
from treepiece.serving.limits import header, own_path
from treepiece.serving.logs import describe_error, log
from treepiece.serving.problems import MEDIA_TYPE, ClientLeftError, Problem, ProblemType
from treepiece.serving.service import NAME, REFUSED, Service

FIELDS = "treepiece.fields"
"""Where a request keeps what will be logged of it."""
LEFT = 499
"""Stands in the log and the metrics for the status of an answer that nobody waited for."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset(("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"))


class Front:
    """Middleware around all routes; `paths` are those that there are, and `open_paths` need no token."""

    def __init__(self, app: ASGIApp, service: Service, paths: frozenset[str], open_paths: frozenset[str]) -> None:
        self.app = app
        self._service = service
        self._paths = paths
        self._guard = Guard(service.settings.token, open_paths)
        self._cors = Cors(service.settings.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(scope, send, self._cors, self._service)
        with self._service.metrics.under_way.track_inprogress():
            try:
                await self._answer(scope, receive, exchange)
            finally:
                self._note(scope, exchange)

    async def _answer(self, scope: Scope, receive: Receive, exchange: _Exchange) -> None:
        try:
            preflight = self._cors.preflight(scope)
            if preflight is not None:
                await Response(status_code=204)(scope, receive, exchange.send)
                return
            self._guard.check(scope)
            await self.app(scope, receive, exchange.send)
        except ClientLeftError:
            pass
        except Problem as problem:
            await exchange.fail(problem, receive)
        except Exception as error:
            fields = {"id": exchange.name, **describe_error(error)}
            log("fault", fields, level=logging.ERROR)
            if exchange.status != LEFT:
                raise  # an answer has begun: all that is left is to close the connection
            await exchange.fail(Problem(ProblemType.FAULT, "the server could not answer this; it is logged"), receive)

    def _note(self, scope: Scope, exchange: _Exchange) -> None:
        seconds = perf_counter() - exchange.begin
        path = own_path(scope) if own_path(scope) in self._paths else "other"
        method = scope["method"] if scope["method"] in _METHODS else "other"
        status = exchange.status
        if REFUSED in scope:  # its body was not HTTP: the connection has said so
            status = scope[REFUSED].status
            scope[FIELDS]["problem"] = scope[REFUSED].slug
        self._service.metrics.on_request(path, method, status, seconds)
        fields = {
            "id": exchange.name,
            "method": method,
            "path": path,
            "status": status,
            "milliseconds": round(seconds * 1e3, 2),
        }
        log("request", fields | scope[FIELDS])


class _Exchange:
    """A request and what was answered to it so far."""

    def __init__(self, scope: Scope, send: Send, cors: Cors, service: Service) -> None:
        self.begin = perf_counter()
        self.status = LEFT
        given = header(scope, b"x-request-id")
        usual = given if given is not None and _NAME.fullmatch(given) else next(service.names)
        self.name = str(scope.setdefault(NAME, usual))
        scope[FIELDS] = {}
        self._scope = scope
        self._send = send
        self._cors = cors
        self._service = service

    async def send(self, message: Message) -> None:
        """Send a part of the answer; headers of our own go with the first."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = with_security(message["headers"])
            headers.append((b"x-request-id", self.name.encode()))
            headers += self._cors.preflight(self._scope) or self._cors.headers(self._scope)
            if self._service.is_stopping:
                headers.append((b"connection", b"close"))
            message["headers"] = headers
        elif self._scope["method"] == "HEAD":
            message = {**message, "body": b""}  # the headers are those of a GET, its length too
        await self._send(message)

    async def fail(self, problem: Problem, receive: Receive) -> None:
        """Send a problem."""
        self._scope[FIELDS]["problem"] = problem.kind.slug
        self._service.metrics.on_problem(problem.kind.slug)
        body = problem.kind.to_json(problem.detail, self.name)
        response = Response(body, problem.kind.status, dict(problem.headers), MEDIA_TYPE)
        await response(self._scope, receive, self.send)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Raise the problem that an error of the router is: a path or a method that is not there."""
    assert isinstance(error, HTTPException)
    if error.status_code == ProblemType.WRONG_METHOD.status:
        allowed = (error.headers or {}).get("Allow", "")
        detail = f"{request.method[:20]} cannot be used here: use {allowed}"
        raise Problem(ProblemType.WRONG_METHOD, detail, {"Allow": allowed})
    if error.status_code == ProblemType.NOT_FOUND.status:
        raise Problem(
            ProblemType.NOT_FOUND, f"there is nothing at {request.scope['path'][:80]!r}: see /docs for what there is"
        )
    raise error
