"""The handlers of the server; `app` gives them their paths, and `schema` has the types of their bodies."""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from treepiece.serving.answering import TREES, Answer, Task
from treepiece.serving.metrics import CONTENT_TYPE
from treepiece.serving.problems import Problem, ProblemType
from treepiece.serving.requests import check_length, check_texts, read_request
from treepiece.serving.schema import ParseBody, TokenizeBody
from treepiece.serving.service import Service

_BEARER = HTTPBearer(auto_error=False, scheme_name="token")


async def check_token(
    request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]
) -> None:
    """Raise if a request does not have the token. The comparison takes constant time."""
    token = _service(request).settings.token or ""
    if given is None or not secrets.compare_digest(given.credentials.strip().encode(), token.encode()):
        raise Problem(
            ProblemType.NO_TOKEN,
            "this server asks for a token: send it as `Authorization: Bearer TOKEN`",
            {"WWW-Authenticate": 'Bearer realm="treepiece"'},
        )


async def parse(request: Request) -> Response:
    """Parse one text, or a list of them.

    With `text` the answer is one result, or a problem if the text cannot be parsed. With `texts` it is a list in the
    order of the texts; a text that cannot be parsed has an `error` in its place. A text has the same answer alone, in a
    list, and concurrently with other requests.
    """
    service = _service(request)
    body = await read_request(request, ParseBody, service)
    is_list = "texts" in body.model_fields_set
    texts = body.texts if is_list else [body.text]
    task = Task(body.nbest)
    check_texts(texts, task, service.settings)
    service.parser.request(body.nbest, body.min_confidence)
    request.state.log["texts"] = texts if service.settings.log_texts else len(texts)
    answers = await service.answer(task, [(text, body.min_confidence) for text in texts], request)
    if is_list:
        results = b",".join(answer.body for answer in answers)
        return Response(b'{"results":[%b]}' % results, media_type="application/json")
    return _single(answers)


async def tokenize(request: Request) -> Response:
    """Cut a tree into units.

    The tree is TOP text, with or without words. The model must know every label.
    """
    service = _service(request)
    body = await read_request(request, TokenizeBody, service)
    definition = service.parser.definition
    if definition.tokenizer is None:
        detail = f"a model of the kind {definition.kind} has no units; its bundle has no tokenizer"
        raise Problem(ProblemType.NO_UNITS, detail)
    check_length("the tree", body.tree, service.settings)
    return _single(await service.answer(TREES, [(body.tree, 0.0)], request))


async def model(request: Request) -> Response:
    """Describe the model, with its scores and labels, and the limits of the server."""
    return JSONResponse(_service(request).description)


async def metrics(request: Request) -> Response:
    """Return counters and histograms in Prometheus' text format."""
    return Response(_service(request).metrics.write(), media_type=CONTENT_TYPE)


async def live(request: Request) -> Response:
    """Report that the process answers: if this fails, restart it."""
    return JSONResponse({"status": "live"})


async def ready(request: Request) -> Response:
    """Report whether to send requests here: not while the server is stopping."""
    if _service(request).is_stopping:
        raise Problem(ProblemType.STOPPING, "this server is stopping; it finishes accepted requests")
    return JSONResponse({"status": "ready"})


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _single(answers: list[Answer]) -> Response:
    """Return the only answer, or raise its error."""
    (answer,) = answers
    if answer.error is not None:
        raise Problem(ProblemType.BAD_INPUT, str(answer.error))
    return Response(answer.body, media_type="application/json")
