"""The middleware of every request: an id, security headers, metrics and the log; and errors as problem objects."""

from __future__ import annotations

import logging
import re
from time import perf_counter

import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treepiece.serving.logs import describe_error, log
from treepiece.serving.problems import MEDIA_TYPE, Problem, ProblemType
from treepiece.serving.service import Service

NOTHING = "default-src 'none'; frame-ancestors 'none'"
"""The policy of an answer that is not a page: a browser that opens it as one runs nothing."""
OWN_FILES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The policy of a page: it uses only resources of this server."""
CLIENT_LEFT = 499
"""The status in the log and the metrics if the client disconnected before the answer."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset(("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"))


class RequestMiddleware:
    """Gives each request an id, counts and logs it, and adds headers to its answer. HEAD is GET without a body."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin = perf_counter()
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else next(self._service.request_ids)
        status = CLIENT_LEFT
        method = scope["method"]
        fields: dict[str, object] = {}
        inner = {**scope, "method": "GET" if method == "HEAD" else method}
        inner.pop("route", None)  # the route of an application around this one
        inner["state"] = {**scope.get("state", {}), "request_id": request_id, "log": fields}

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(MutableHeaders(scope=message), request_id)
            elif method == "HEAD":
                message = {**message, "body": b""}  # the headers are those of a GET, its length too
            try:
                await send(message)
            except h11.LocalProtocolError:  # uvicorn has refused the body, and closes the connection
                raise ClientDisconnect from None

        self._service.under_way += 1
        try:
            await self.app(inner, receive, send_with_headers)
        except ClientDisconnect:
            pass
        except Exception as error:
            log("fault", {"id": request_id, **describe_error(error)}, level=logging.ERROR)
            if status != CLIENT_LEFT:
                raise  # an answer has begun, so only closing the connection is left
            problem = Problem(ProblemType.FAULT, "the server could not answer this request; the log says why")
            response = await on_problem(Request(inner), problem)
            await response(inner, receive, send_with_headers)
        finally:
            self._service.under_way -= 1
            seconds = perf_counter() - begin
            path = str(getattr(inner.get("route"), "path", "other"))
            method = method if method in _METHODS else "other"
            self._service.metrics.on_request(path, method, status, seconds)
            times = {"status": status, "milliseconds": round(seconds * 1e3, 2)}
            log("request", {"id": request_id, "method": method, "path": path, **times, **fields})

    def _add_headers(self, headers: MutableHeaders, request_id: str) -> None:
        is_page = headers.get("content-type", "").startswith("text/html")
        headers["X-Request-ID"] = request_id
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "no-referrer"
        headers["Content-Security-Policy"] = OWN_FILES if is_page else NOTHING
        headers["Cache-Control"] = "no-cache" if "etag" in headers else "no-store"
        if self._service.is_stopping:
            headers["Connection"] = "close"


async def on_problem(request: Request, problem: Exception) -> Response:
    """Return a problem as an answer."""
    assert isinstance(problem, Problem)
    request.state.log["problem"] = problem.kind.slug
    request.app.state.service.metrics.on_problem(problem.kind.slug)
    body = problem.kind.to_json(problem.detail, request.state.request_id)
    return Response(body, problem.kind.status, dict(problem.headers), MEDIA_TYPE)


async def on_option_error(request: Request, error: Exception) -> Response:
    """Return the answer to a body or an option that was refused."""
    return await on_problem(request, Problem(ProblemType.BAD_INPUT, str(error)))


async def on_http_error(request: Request, error: Exception) -> Response:
    """Return the answer to an error of the router: a path or a method that does not exist."""
    assert isinstance(error, HTTPException)
    if error.status_code == ProblemType.WRONG_METHOD.status:
        allowed = (error.headers or {}).get("Allow", "")
        allowed = "GET, HEAD" if allowed == "GET" else allowed
        detail = f"{request.method[:20]} is not allowed here: use {allowed}"
        return await on_problem(request, Problem(ProblemType.WRONG_METHOD, detail, {"Allow": allowed}))
    if error.status_code == ProblemType.NOT_FOUND.status:
        detail = f"no such path: {request.scope['path'][:80]!r}; see /docs for all paths"
        return await on_problem(request, Problem(ProblemType.NOT_FOUND, detail))
    raise error
