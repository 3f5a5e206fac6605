"""The page at `/`: files of a folder in the package, read once and served from memory."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from treepiece.serving.headers import OWN_FILES
from treepiece.serving.limits import header

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""Not left to `mimetypes`, which asks the system: browsers run no script that a system calls plain text."""


def add_page(app: FastAPI, folder: Path = FOLDER) -> frozenset[str]:
    """Serve the files of a folder, and return their paths.

    `index.html` is at `/`; without one, `/` leads to the reference. Each file is a route of its own, so that
    nothing but these files can be asked for, and a path that is there but wants another method still says so.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    routes = ["/"]
    if folder / INDEX not in files:
        app.add_api_route("/", _to_reference, methods=["GET"], include_in_schema=False)
    for path in files:
        name = path.relative_to(folder).as_posix()
        route = "/" if name == INDEX else f"/{name}"
        app.add_api_route(route, _serve(path), methods=["GET"], include_in_schema=False)
        routes.append(route)
    return frozenset(routes)


async def _to_reference(request: Request) -> Response:
    return RedirectResponse("/docs", 307)


def _serve(path: Path) -> Callable[[Request], Awaitable[Response]]:
    body = path.read_bytes()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Content-Security-Policy": OWN_FILES}
    media_type = MEDIA_TYPES.get(path.suffix, "application/octet-stream")

    async def send(request: Request) -> Response:
        if header(request.scope, b"if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=media_type)

    return send
