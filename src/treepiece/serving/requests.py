"""Reads requests: the body within its limits, as JSON, as a pydantic model; then checks the limits on texts.

FastAPI reads bodies too, but without a limit on size or time, accepts `NaN` as a number, and fails on deep JSON and
lone surrogates.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from treepiece.errors import OptionError
from treepiece.serving.answering import CANDIDATE_CHARACTERS, Task
from treepiece.serving.problems import RETRY_AFTER, Problem, ProblemType
from treepiece.serving.service import Service
from treepiece.serving.settings import Settings

Model = TypeVar("Model", bound=BaseModel)


async def read_request(request: Request, model: type[Model], service: Service) -> Model:
    """Return the body of a request, unless too many are in progress: each may hold a body in memory."""
    if service.under_way > service.settings.concurrency:
        detail = f"{service.settings.concurrency:,} requests are under way already"
        raise Problem(ProblemType.TOO_MANY, detail, RETRY_AFTER)
    _check_type(request.headers.get("content-type"), request.headers.get("content-encoding"))
    value = read_json(await read_body(request, service.settings))
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise OptionError(_explain(error, model)) from None


def _check_type(media_type: str | None, encoding: str | None) -> None:
    kind, *parameters = (part.strip() for part in (media_type or "").lower().replace('"', "").split(";"))
    charsets = [parameter for parameter in parameters if parameter.startswith("charset=")]
    if kind != "application/json" or charsets not in ([], ["charset=utf-8"]):
        found = "none" if media_type is None else repr(media_type[:80])
        raise Problem(ProblemType.WRONG_TYPE, f"the content type must be application/json, got {found}")
    if encoding is not None and encoding.strip().lower() != "identity":
        raise Problem(ProblemType.WRONG_TYPE, f"the body must not be compressed, got {encoding[:40]!r}")


async def read_body(request: Request, settings: Settings) -> bytes:
    """Return the body of a request, if it is small enough and arrives in time."""
    length = request.headers.get("content-length")
    if length is not None and int(length) > settings.max_bytes:  # uvicorn has checked that it is an integer
        raise _too_large(request, settings, f"{int(length):,} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_seconds):
            async for part in request.stream():
                body += part
                if len(body) > settings.max_bytes:
                    raise _too_large(request, settings, "more than that")
    except TimeoutError:
        detail = f"the body did not arrive within {settings.body_seconds:g} seconds"
        raise Problem(ProblemType.SLOW_REQUEST, detail, {"Connection": "close"}) from None
    return bytes(body)


def _too_large(request: Request, settings: Settings, found: str) -> Problem:
    # A client that expects 100-continue has sent nothing yet. Any other may read the answer only after sending
    # everything, and would not get it over a closed connection.
    headers = {"Connection": "close"} if "expect" in request.headers else {}
    detail = f"the body must have at most {settings.max_bytes:,} bytes, got {found}"
    return Problem(ProblemType.TOO_LARGE, detail, headers)


def read_json(body: bytes) -> object:
    """Return the JSON value of a body.

    >>> read_json(b'{"text": "call mom"}')
    {'text': 'call mom'}
    """
    try:
        return json.loads(body.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is not UTF-8"
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, col {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:  # a number with thousands of digits, NaN or Infinity
        reason = str(error).partition(";")[0]
    raise Problem(ProblemType.BROKEN_JSON, f"the body is not JSON: {reason}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first validation error in the library's words."""
    found = error.errors(include_url=False, include_input=False)[0]
    name = found["loc"][0] if found["loc"] else ""
    keys = ", ".join(model.model_fields)
    match found["type"]:
        case "value_error":
            return str(found["ctx"]["error"])
        case "missing":
            return f"{name!r} is missing: give it in the JSON object"
        case "extra_forbidden":
            return f"{str(name)[:60]!r} is unknown: the keys are {keys}"
        case _:
            return f"the body must be a JSON object; its keys are {keys}"


def check_texts(texts: Sequence[str], task: Task, settings: Settings) -> None:
    """Raise if a request has too many texts, too long a text, or asks for too many candidates."""
    if len(texts) > settings.max_texts:
        raise OptionError(
            f"texts must be at most {settings.max_texts:,} at a time, got {len(texts):,}: send several requests"
        )
    if len(texts) * task.nbest > settings.max_candidates:
        raise OptionError(
            f"texts times nbest must be at most {settings.max_candidates:,}, got {len(texts):,} times {task.nbest:,}"
        )
    for number, text in enumerate(texts):
        check_length(f"text {number}" if len(texts) > 1 else "the text", text, settings)
    candidates = sum(map(task.weight, texts))
    if candidates > settings.max_candidates:
        raise OptionError(
            f"texts times nbest must be at most {settings.max_candidates:,}, where every {CANDIDATE_CHARACTERS} "
            f"characters of a text count as one, got {candidates:,}: send fewer or shorter texts, or ask for a smaller "
            "nbest"
        )


def check_length(name: str, text: str, settings: Settings) -> None:
    """Raise if a text is too long."""
    if len(text) > settings.max_characters:
        raise OptionError(
            f"{name} is too long: at most {settings.max_characters:,} characters, got {len(text):,}; "
            f"it begins {text[:40]!r}"
        )
