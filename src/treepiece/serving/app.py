"""The application: routes, their description, and the middleware around them."""

from __future__ import annotations

import mimetypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Security
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from treepiece.errors import OptionError
from treepiece.runtime.parser import Parser
from treepiece.serving import routes, schema
from treepiece.serving.middleware import RequestMiddleware, on_http_error, on_option_error, on_problem
from treepiece.serving.problems import MEDIA_TYPE, Problem, ProblemType
from treepiece.serving.reference import write_page
from treepiece.serving.service import Service
from treepiece.serving.settings import Settings

PAGE = Path(__file__).parent / "page"
P = ProblemType
_BODY = (P.BROKEN_JSON, P.SLOW_REQUEST, P.TOO_LARGE, P.WRONG_TYPE, P.BAD_INPUT, P.QUEUE_FULL, P.NO_ANSWER, P.TOO_MANY)

mimetypes.add_type("text/javascript", ".js")  # some systems say text/plain, which browsers do not run


def create_app(parser: Parser, settings: Settings | None = None) -> FastAPI:
    """Return an application that serves a parser; any ASGI server can run it."""
    service = Service(parser, settings or Settings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.batcher.close()

    app = FastAPI(
        title="treepiece",
        summary="Semantic parsing with tree tokenization: texts in, trees out.",
        version=version("treepiece"),
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers={Problem: on_problem, OptionError: on_option_error, HTTPException: on_http_error},
    )
    app.state.service = service
    app.include_router(_guarded(service.settings))
    app.include_router(_open())
    app.mount("/page", StaticFiles(directory=PAGE, follow_symlink=True))
    _add_middleware(app, service)
    return app


def _guarded(settings: Settings) -> APIRouter:
    """Return the routes that need the token, if there is one."""
    has_token = settings.token is not None
    guard = (P.NO_TOKEN,) if has_token else ()
    router = APIRouter(dependencies=[Security(routes.check_token)] if has_token else [])
    router.post(
        "/v1/parse",
        response_model=schema.ParseAnswer | schema.ParseAnswers,
        responses=_problems(*_BODY, *guard),
        openapi_extra=schema.request_schema(schema.ParseBody, settings),
    )(routes.parse)
    router.post(
        "/v1/tokenize",
        response_model=schema.TokenizeAnswer,
        responses=_problems(*_BODY, P.NO_UNITS, *guard),
        openapi_extra=schema.request_schema(schema.TokenizeBody, settings),
    )(routes.tokenize)
    router.get("/v1/model", response_model=schema.ModelAnswer, responses=_problems(*guard))(routes.model)
    router.get("/metrics", response_class=PlainTextResponse, responses=_problems(*guard))(routes.metrics)
    return router


def _open() -> APIRouter:
    """Return the routes that need no token: health checks, the playground and the reference."""
    router = APIRouter()
    router.get("/livez", response_model=schema.Health, responses=_problems())(routes.live)
    router.get("/readyz", response_model=schema.Health, responses=_problems(P.STOPPING))(routes.ready)

    @router.get("/", include_in_schema=False)
    async def playground() -> Response:
        return FileResponse(PAGE / "index.html")

    @router.get("/openapi.json", include_in_schema=False)
    async def description(request: Request) -> Response:
        return JSONResponse(request.app.openapi())

    @router.get("/docs", include_in_schema=False)
    async def reference(request: Request) -> Response:
        return HTMLResponse(write_page(request.app.openapi()))

    return router


def _add_middleware(app: FastAPI, service: Service) -> None:
    """Add the middleware; the last one is outermost."""
    settings = service.settings
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=("GET", "POST"),
            allow_headers=("Authorization", "Content-Type", "X-Request-ID"),
            expose_headers=("Retry-After", "X-Request-ID"),
        )
    if settings.allowed_hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=settings.allowed_hosts, www_redirect=False)
    app.add_middleware(RequestMiddleware, service=service)


def _problems(*kinds: ProblemType) -> dict[int | str, dict[str, Any]]:
    """Return the description of a route's problem responses."""
    found: dict[int | str, dict[str, Any]] = {}
    content = {MEDIA_TYPE: {"schema": schema.ProblemAnswer.model_json_schema()}}
    for kind in sorted((*kinds, P.FAULT), key=lambda kind: kind.status):
        titles = [found[kind.status]["description"]] if kind.status in found else []
        found[kind.status] = {"description": "; ".join([*titles, kind.title]), "content": content}
    return found
