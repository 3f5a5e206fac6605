"""What the parts of a server share: the parser, the queue in front of it, the metrics, and whether it is stopping."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from itertools import count

from starlette.types import Receive, Scope

from treepiece.runtime.parser import Parser
from treepiece.serving.answering import Answer, Answerer, Item, Task
from treepiece.serving.batching import Batcher, QueueFullError
from treepiece.serving.description import describe
from treepiece.serving.limits import RETRY_AFTER, wait_for
from treepiece.serving.logs import log
from treepiece.serving.metrics import Metrics
from treepiece.serving.problems import Problem, ProblemType
from treepiece.serving.settings import Settings

NAME = "treepiece.name"
"""Where a request keeps its name, which the client is told and the log has."""
REFUSED = "treepiece.refused"
"""Where a request keeps with which problem its connection has answered it, before the routes could."""


class Service:
    """A parser behind a queue. It holds all of the model: what becomes of the bundle's folder does not matter."""

    def __init__(self, parser: Parser, settings: Settings) -> None:
        parser.open()
        self.parser = parser
        self.settings = settings
        self.is_stopping = False
        self.names = map(f"{secrets.token_hex(4)}-{{:x}}".format, count(1))
        """Names for requests, each once."""
        self.description = describe(parser, settings)
        self.batcher: Batcher[Task, Item, Answer] = Batcher(
            Answerer(parser, lambda: self.batcher.unanswered),
            size=settings.batch_size,
            wait=settings.batch_wait / 1e3,
            bound=settings.queue,
            observe=lambda n_texts, seconds: self.metrics.on_batch(n_texts, seconds),
        )
        self.metrics = Metrics(self.description, lambda: self.batcher.waiting, settings.queue)

    def refuse(self, kind: ProblemType, scope: Scope | None) -> str:
        """Note what a connection refuses by itself, and return its name.

        A request that is under way has a `scope`, and is counted and logged where it ends. Otherwise there was none
        yet, or none that could be read: this is all there will be of it.
        """
        self.metrics.on_problem(kind.slug)
        if scope is not None:
            scope[REFUSED] = kind
            return str(scope.setdefault(NAME, next(self.names)))
        name = next(self.names)
        self.metrics.on_refusal(kind.status)
        log("request", {"id": name, "method": "other", "path": "other", "status": kind.status, "problem": kind.slug})
        return name

    async def answer(self, task: Task, items: Sequence[Item], receive: Receive) -> list[Answer]:
        """Return the answer of each item; raise a problem where there is no room for them, or no answer in time."""
        try:
            weights = [task.weight(text) for text, _ in items]
            future: asyncio.Future[list[Answer | Exception]] = self.batcher.submit(task, items, weights)
        except QueueFullError:
            detail = f"{self.batcher.waiting:,} readings wait already, of at most {self.settings.queue:,}"
            raise Problem(ProblemType.QUEUE_FULL, detail, RETRY_AFTER) from None
        answers = []
        for answer in await wait_for(future, receive, self.settings):
            if isinstance(answer, Exception):
                raise answer
            self.metrics.on_texts(answer.outcome)
            answers.append(answer)
        return answers
