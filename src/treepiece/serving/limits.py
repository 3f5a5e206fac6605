"""What is too much, and what is too slow: checked before it costs anything."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from starlette.types import Receive, Scope

from treepiece.errors import OptionError
from treepiece.serving.answering import READING, Task
from treepiece.serving.problems import ClientLeftError, Problem, ProblemType
from treepiece.serving.settings import Settings

T = TypeVar("T")

RETRY_AFTER = {"Retry-After": "1"}


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header of a request; `name` in small letters."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def own_path(scope: Scope) -> str:
    """Return the path of a request as the routes know it: without the prefix that the application is mounted under.

    >>> own_path({"path": "/parser/v1/model", "root_path": "/parser"}), own_path({"path": "/v1/model"})
    ('/v1/model', '/v1/model')
    """
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "")
    is_below = path == prefix or path.startswith(f"{prefix}/")
    return path[len(prefix) :] if is_below else path


async def read_body(scope: Scope, receive: Receive, settings: Settings) -> bytes:
    """Return the body of a request, if it is small enough and comes in time."""
    length = header(scope, b"content-length")
    if length is not None and int(length) > settings.most_bytes:  # that it is a number was checked before
        raise _too_large(settings, f"{int(length):,} bytes")
    try:
        async with asyncio.timeout(settings.body_seconds):
            return await _read(receive, settings)
    except TimeoutError:
        raise Problem(
            ProblemType.SLOW_REQUEST,
            f"the body did not arrive within {settings.body_seconds:g} seconds",
            {"Connection": "close"},
        ) from None


async def _read(receive: Receive, settings: Settings) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeftError
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > settings.most_bytes:
            raise _too_large(settings, "more than that")
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(settings: Settings, found: str) -> Problem:
    return Problem(ProblemType.TOO_LARGE, f"the body must have at most {settings.most_bytes:,} bytes, got {found}")


def check_texts(texts: Sequence[str], task: Task, settings: Settings) -> None:
    """Raise if a request has too many texts, too long a text, or asks for too many readings."""
    if len(texts) > settings.most_texts:
        raise OptionError(
            f"texts must be at most {settings.most_texts:,} at a time, got {len(texts):,}: send several requests"
        )
    if len(texts) * task.nbest > settings.most_readings:
        raise OptionError(
            f"texts times nbest must be at most {settings.most_readings:,}, got {len(texts):,} times {task.nbest:,}"
        )
    for number, text in enumerate(texts):
        check_length(f"text {number}" if len(texts) > 1 else "the text", text, settings)
    readings = sum(map(task.weight, texts))
    if readings > settings.most_readings:
        raise OptionError(
            f"texts times nbest must be at most {settings.most_readings:,}, where every {READING} characters of a text "
            f"count as one, got {readings:,}: send fewer or shorter texts, or ask for a smaller nbest"
        )


def check_length(name: str, text: str, settings: Settings) -> None:
    """Raise if a text is too long."""
    if len(text) > settings.most_characters:
        raise OptionError(
            f"{name} is too long: at most {settings.most_characters:,} characters, got {len(text):,}; "
            f"it begins {text[:40]!r}"
        )


async def wait_for(answer: asyncio.Future[T], receive: Receive, settings: Settings) -> T:
    """Return an answer; give it up where it takes too long, or where the client goes away before it is there."""
    left = asyncio.ensure_future(receive())  # all of the body has been read: what comes now is that the client left
    left.add_done_callback(lambda _: _fail(answer, ClientLeftError()))
    timer = asyncio.get_running_loop().call_later(settings.answer_seconds, _fail, answer, _too_late(settings))
    try:
        return await answer
    finally:
        timer.cancel()
        left.cancel()
        answer.cancel()


def _too_late(settings: Settings) -> Problem:
    detail = f"there was no answer within {settings.answer_seconds:g} seconds: the server has too much to do"
    return Problem(ProblemType.NO_ANSWER, detail, RETRY_AFTER)


def _fail(answer: asyncio.Future[T], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
