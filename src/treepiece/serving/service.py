"""The shared state of a server: the parser, its queue, the metrics, and whether the server is stopping."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Sequence
from importlib.metadata import version
from itertools import count

from starlette.requests import ClientDisconnect, Request

from treepiece.bundle import VERSION
from treepiece.runtime.parser import MAX_NBEST, Parser
from treepiece.serving.answering import CANDIDATE_CHARACTERS, Answer, Answerer, Item, Task
from treepiece.serving.batching import Batcher, QueueFullError
from treepiece.serving.metrics import Metrics
from treepiece.serving.problems import RETRY_AFTER, Problem, ProblemType
from treepiece.serving.settings import Settings


class Service:
    """A parser behind a queue. It holds all of the model, so the bundle's folder may change or be removed."""

    def __init__(self, parser: Parser, settings: Settings) -> None:
        parser.open()
        self.parser = parser
        self.settings = settings
        self.is_stopping = False
        self.under_way = 0
        """The number of requests without an answer yet."""
        self.request_ids = map(f"{secrets.token_hex(4)}-{{:x}}".format, count(1))
        self.description = describe(parser, settings)
        self.batcher: Batcher[Task, Item, Answer] = Batcher(
            Answerer(parser, lambda: self.batcher.unanswered),
            size=settings.batch_size,
            wait=settings.batch_wait / 1e3,
            bound=settings.queue,
            observe=lambda n_texts, seconds: self.metrics.on_batch(n_texts, seconds),
        )
        self.metrics = Metrics(
            self.description,
            waiting=lambda: self.batcher.waiting,
            bound=settings.queue,
            under_way=lambda: self.under_way,
        )

    async def answer(self, task: Task, items: Sequence[Item], request: Request) -> list[Answer]:
        """Return the answer of each item; raise a problem if the queue is full, or if there is no answer in time."""
        try:
            future = self.batcher.submit(task, items, [task.weight(text) for text, _ in items])
        except QueueFullError:
            detail = f"{self.batcher.waiting:,} candidates wait already, of at most {self.settings.queue:,}"
            raise Problem(ProblemType.QUEUE_FULL, detail, RETRY_AFTER) from None
        answers = []
        for answer in await wait_for(future, request, self.settings.answer_seconds):
            if isinstance(answer, Exception):
                raise answer
            self.metrics.on_text(answer.outcome)
            answers.append(answer)
        return answers


async def wait_for(
    answers: asyncio.Future[list[Answer | Exception]], request: Request, seconds: float
) -> list[Answer | Exception]:
    """Return answers; give up when they take too long, or when the client disconnects."""
    disconnected = asyncio.ensure_future(request.receive())  # the body has been read, so this can only be a disconnect
    try:
        await asyncio.wait((answers, disconnected), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answers.done():
            return answers.result()
        if disconnected.done():
            raise ClientDisconnect
        detail = f"there was no answer within {seconds:g} seconds: the server is overloaded"
        raise Problem(ProblemType.NO_ANSWER, detail, RETRY_AFTER)
    finally:
        disconnected.cancel()
        answers.cancel()


def fingerprint(parser: Parser) -> str:
    """Return a version that changes with the answers: a hash of the bundle's checksums and the settings."""
    value = [parser.precision, parser.corrects_spelling, sorted(parser.bundle.files.items())]
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]


def describe(parser: Parser, settings: Settings) -> dict[str, object]:
    """Return the answer of `/v1/model`: the model, its scores, and the limits of the server."""
    tokenizer = parser.definition.tokenizer
    quality = parser.metadata.get("quality", {}).get(parser.precision, {})
    return {
        "name": parser.bundle.folder.resolve().name,
        "kind": str(parser.definition.kind),
        "version": fingerprint(parser),
        "format": VERSION,
        "treepiece": version("treepiece"),
        "precision": str(parser.precision),
        "threads": parser.threads,
        "data": str(parser.metadata.get("data", "")),
        "scores": {name: value for name, value in quality.items() if isinstance(value, int | float)},
        "spelling": parser.corrects_spelling,
        "labels": list(parser.definition.labels),
        "units": None if tokenizer is None else len(tokenizer.units),
        "limits": {
            "bytes": settings.max_bytes,
            "texts": settings.max_texts,
            "characters": settings.max_characters,
            "subwords": parser.subwords.max_length,
            "nbest": MAX_NBEST,
            "candidates": settings.max_candidates,
            "characters_per_candidate": CANDIDATE_CHARACTERS,
            "queue": settings.queue,
            "concurrency": settings.concurrency,
            "batch_size": settings.batch_size,
            "batch_wait_milliseconds": settings.batch_wait,
            "body_seconds": settings.body_seconds,
            "answer_seconds": settings.answer_seconds,
        },
    }
