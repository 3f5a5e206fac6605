"""Bodies as JSON, and JSON as what was asked for.

FastAPI would do this too, but with words of its own, and not for every body: deep JSON and lone surrogates end in a
fault there. So bodies are read here, and FastAPI only describes them.
"""

from __future__ import annotations

import json
from typing import NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from treepiece.serving.limits import header, read_body
from treepiece.serving.problems import Problem, ProblemType
from treepiece.serving.settings import Settings

Model = TypeVar("Model", bound=BaseModel)


async def read_request(request: Request, model: type[Model], settings: Settings) -> Model:
    """Return what the body of a request asks for."""
    _check_type(header(request.scope, b"content-type"), header(request.scope, b"content-encoding"))
    value = read_json(await read_body(request.scope, request.receive, settings))
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise Problem(ProblemType.BAD_INPUT, _explain(error, model)) from None


def _check_type(media_type: str | None, encoding: str | None) -> None:
    kind, *parameters = (part.strip() for part in (media_type or "").lower().replace('"', "").split(";"))
    charsets = [parameter for parameter in parameters if parameter.startswith("charset=")]
    if kind != "application/json" or charsets not in ([], ["charset=utf-8"]):
        found = "none" if media_type is None else repr(media_type[:80])
        raise Problem(ProblemType.WRONG_TYPE, f"the content type must be application/json, got {found}")
    if encoding is not None and encoding.strip().lower() != "identity":
        raise Problem(ProblemType.WRONG_TYPE, f"the body must not be compressed, got {encoding[:40]!r}")


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
    except ValueError as error:  # a number of thousands of digits, or NaN
        reason = str(error).partition(";")[0]
    raise Problem(ProblemType.BROKEN_JSON, f"the body is not JSON: {reason}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON has")


def _explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the first complaint in the library's words."""
    found = error.errors(include_url=False, include_input=False)[0]
    name = found["loc"][0] if found["loc"] else ""
    keys = ", ".join(model.model_fields)
    match found["type"]:
        case "value_error":
            return str(found["ctx"]["error"])
        case "missing":
            return f"{name!r} is missing: give it in the JSON object"
        case "extra_forbidden":
            return f"{str(name)[:60]!r} is not known here: the keys are {keys}"
        case _:
            return f"the body must be a JSON object; its keys are {keys}"
