"""The application: routes, their description, and what is around them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from treepiece.runtime.parser import Parser
from treepiece.serving.auth import OPEN
from treepiece.serving.front import Front, on_http_error
from treepiece.serving.page import add_page
from treepiece.serving.problems import MEDIA_TYPE, ProblemType
from treepiece.serving.reference import add_reference
from treepiece.serving.routes import Routes
from treepiece.serving.schema import (
    Health,
    ModelAnswer,
    ParseAnswer,
    ParseAnswers,
    ParseRequest,
    ProblemAnswer,
    TokenizeAnswer,
    TokenizeRequest,
    request_schema,
)
from treepiece.serving.service import Service
from treepiece.serving.settings import Settings

P = ProblemType
_BODY = (P.BROKEN_JSON, P.SLOW_REQUEST, P.TOO_LARGE, P.WRONG_TYPE, P.BAD_INPUT, P.QUEUE_FULL, P.NO_ANSWER)
_ALWAYS = (P.BROKEN_REQUEST, P.SLOW_REQUEST, P.FAULT, P.TOO_MANY)

Responses = dict[int | str, dict[str, Any]]


def create_app(parser: Parser, settings: Settings | None = None) -> FastAPI:
    """Return an application that answers with a parser; any ASGI server can run it.

    `treepiece.serving.run` runs it with uvicorn, and with the limits that only a server can keep: how long the head of
    a request may take, how many connections there may be, and what happens to them at the end.
    """
    service = Service(parser, settings or Settings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.batcher.close()

    app = _App(
        title="treepiece",
        summary="Semantic parsing with tree tokenization: texts in, trees out.",
        version=version("treepiece"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.router.route_class = _Direct
    app.state.service = service
    app.add_exception_handler(HTTPException, on_http_error)
    _add_routes(app, Routes(service), service.settings)
    add_reference(app)
    open_paths = OPEN | add_page(app)
    paths = frozenset(path for route in app.routes if (path := getattr(route, "path", None)))
    app.add_middleware(Front, service=service, paths=paths, open_paths=open_paths)
    return app


class _App(FastAPI):
    """FastAPI, with a description that also has what every route shares."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description."""
        if self.openapi_schema is None:
            components = super().openapi().setdefault("components", {})
            components.setdefault("schemas", {})[ProblemAnswer.__name__] = ProblemAnswer.model_json_schema()
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        assert self.openapi_schema is not None  # it is made above
        return self.openapi_schema


class _Direct(APIRoute):
    """A route that FastAPI describes, and does not stand in the way of.

    Our functions read the request and write the answer themselves; what FastAPI would do around them takes a fifth of
    the time that a request takes beside its parse.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; HEAD is a GET whose body is left out later, and needs no description of its own."""
        methods = sorted(self.methods or ())
        allowed = [*methods, "HEAD"] if "GET" in methods else methods
        if scope["method"] not in allowed:
            raise HTTPException(P.WRONG_METHOD.status, headers={"Allow": ", ".join(allowed)})
        response = await self.endpoint(Request(scope, receive))
        await response(scope, receive, send)


class _Route(NamedTuple):
    """A path and what it is described with."""

    path: str
    function: Callable[[Request], Awaitable[Response]]
    answer: object
    """The model of the answer, or a choice of models; None for text."""
    request: type[BaseModel] | None = None
    problems: tuple[ProblemType, ...] = ()
    needs_token: bool = False


def _add_routes(app: FastAPI, routes: Routes, settings: Settings) -> None:
    for route in (
        _Route("/v1/parse", routes.parse, ParseAnswer | ParseAnswers, ParseRequest, _BODY, needs_token=True),
        _Route(
            "/v1/tokenize", routes.tokenize, TokenizeAnswer, TokenizeRequest, (*_BODY, P.NO_UNITS), needs_token=True
        ),
        _Route("/v1/model", routes.model, ModelAnswer, needs_token=True),
        _Route("/livez", routes.live, Health),
        _Route("/readyz", routes.ready, Health, problems=(P.STOPPING,)),
        _Route("/metrics", routes.metrics, None, needs_token=True),
    ):
        summary, _, description = (route.function.__doc__ or "").partition("\n\n")
        problems = [
            *dict.fromkeys((*route.problems, *_ALWAYS)),
            *([P.NO_TOKEN] if settings.token and route.needs_token else []),
        ]
        app.add_api_route(
            route.path,
            route.function,
            methods=["GET" if route.request is None else "POST"],
            summary=summary.rstrip("."),
            description=" ".join(description.split()) or None,
            response_model=None,
            response_class=PlainTextResponse if route.answer is None else JSONResponse,
            responses=_responses(route.answer, problems),
            openapi_extra=_extra(route, settings),
        )


def _extra(route: _Route, settings: Settings) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if route.request is not None:
        schema = request_schema(route.request, settings)
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if settings.token and route.needs_token:
        extra["security"] = [{"token": []}]
    return extra


def _responses(answer: object, problems: list[ProblemType]) -> Responses:
    found: Responses = {200: {"description": "The answer."}}
    if answer is not None:
        found[200]["model"] = answer
    for status in sorted({problem.status for problem in problems}):
        titles = [problem.title for problem in problems if problem.status == status]
        schema = {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}
        found[status] = {"description": "; ".join(titles), "content": {MEDIA_TYPE: {"schema": schema}}}
    return found
