"""What the server answers, path by path."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from treepiece.errors import OptionError
from treepiece.serving.answering import TREES, Answer, Task
from treepiece.serving.front import FIELDS
from treepiece.serving.limits import check_length, check_texts
from treepiece.serving.metrics import CONTENT_TYPE
from treepiece.serving.problems import Problem, ProblemType, of_input
from treepiece.serving.reading import read_request
from treepiece.serving.schema import ParseRequest, TokenizeRequest
from treepiece.serving.service import Service

JSON = "application/json"


class Routes:
    """The functions behind the paths."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._model = json.dumps(service.description).encode()

    async def parse(self, request: Request) -> Response:
        """Parse one text, or a list of them.

        With `text` the answer is one reading, or a problem where the text cannot be read. With `texts` it is a list in
        the order of the texts, and a text that cannot be read has an `error` in its place. A text has the same answer
        alone, in a list, and beside any other request.
        """
        asked = await read_request(request, ParseRequest, self._service.settings)
        is_list = "texts" in asked.model_fields_set
        texts = asked.texts if is_list else [asked.text]
        task = Task(asked.nbest)
        try:
            check_texts(texts, task, self._service.settings)
            self._service.parser.asked(asked.nbest, asked.min_confidence)
        except OptionError as error:
            raise of_input(error) from None
        fields = request.scope[FIELDS]
        fields["texts"] = texts if self._service.settings.log_texts else len(texts)
        items = [(text, asked.min_confidence) for text in texts]
        answers = await self._service.answer(task, items, request.receive)
        if is_list:
            return Response(b'{"results":[' + b",".join(answer.body for answer in answers) + b"]}", media_type=JSON)
        return _alone(answers)

    async def tokenize(self, request: Request) -> Response:
        """Cut a tree into units.

        The tree is TOP text, with or without words. Every label must be one that the model knows.
        """
        asked = await read_request(request, TokenizeRequest, self._service.settings)
        definition = self._service.parser.definition
        if definition.tokenizer is None:
            detail = f"a model of the kind {definition.kind} has no units; its bundle has no tokenizer"
            raise Problem(ProblemType.NO_UNITS, detail)
        try:
            check_length("the tree", asked.tree, self._service.settings)
        except OptionError as error:
            raise of_input(error) from None
        return _alone(await self._service.answer(TREES, [(asked.tree, 0.0)], request.receive))

    async def model(self, request: Request) -> Response:
        """Tell which model is served, how good it is, its labels, and the limits that are in force."""
        return Response(self._model, media_type=JSON)

    async def live(self, request: Request) -> Response:
        """Tell that the process answers: if this fails, it should be started anew."""
        return Response(b'{"status": "live"}', media_type=JSON)

    async def ready(self, request: Request) -> Response:
        """Tell whether requests should be sent here: not any more once the server is stopping."""
        if self._service.is_stopping:
            raise Problem(ProblemType.STOPPING, "this server is stopping: what it has accepted it will finish")
        return Response(b'{"status": "ready"}', media_type=JSON)

    async def metrics(self, request: Request) -> Response:
        """Write counters and histograms in Prometheus' text format."""
        return Response(self._service.metrics.write(), media_type=CONTENT_TYPE)


def _alone(answers: list[Answer]) -> Response:
    """Return the only answer, or raise why there is none."""
    (answer,) = answers
    if answer.error is not None:
        raise of_input(answer.error)
    return Response(answer.body, media_type=JSON)
