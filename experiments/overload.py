"""Clients of all kinds, more than a server can answer: what `python -m experiments server --overload SECONDS` runs.

    good       one text, or 32; the answer must be the library's, or a refusal that says when to come back
    heavy      several candidates, long texts, and both; the same is asked of the answer
    bad        broken JSON, another type, a body that is too large, 1,000 texts, 10,000 candidates, no path
    slow       a body that drips, a body that ends early
    idle       half a head, what is not HTTP, a connection that says nothing
    leaving    a client that goes away before its answer

There are more requests than may be under way, too: one too many must be refused in the same way. Every client that
stays must get an answer that the server documents. The memory that the server has in the last fifth of the time is
compared with that in the second fifth.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from experiments.clients import LONGEST, Server, expected_of, request_bytes, serving, without_times
from treepiece import Parser
from treepiece.cli.console import ProgressBars

OPTIONS = ("--queue", "256", "--concurrency", "40", "--body-seconds", "2")
GOOD, LISTS, HEAVY, BAD, SLOW, IDLE, LEAVING = 120, 20, 12, 12, 24, 24, 12
MANY = 32
COUNTS = ("answered", "refused", "refused_requests", "refused_bad", "wrong", "lost")
LONG = 200  # characters: a text that is longer is a long one
CANDIDATES = (2, 5, 20)  # of texts of heavy clients
PAUSE = 0.2  # of a client that was refused
REFUSALS = (503,)


class Answer(NamedTuple):
    """A status and what came with it."""

    status: int
    kind: str
    body: bytes
    says_when: bool
    """Whether it says when to come back."""

    def is_refusal(self, statuses: Sequence[int]) -> bool:
        """Return whether this refuses a request with one of these statuses, as the server says that it refuses."""
        is_clean = self.status in statuses and self.kind == "application/problem+json"
        return is_clean and (self.says_when or self.status not in REFUSALS)


class Crowd:
    """The clients, what they saw, and until when they go on."""

    def __init__(self, server: Server, expected: Mapping[tuple[str, int], Any], end: float) -> None:
        self.server = server
        self.expected = expected
        self.texts = [text for text, nbest in expected if nbest == 1]
        self.hard = [(text, nbest) for text, nbest in expected if nbest > 1 or len(text) > LONG]
        self.end = end
        self.counts: Counter[str] = Counter()

    async def exchange(self, *parts: bytes, pause: float = 0.0) -> Answer | None:
        """Return the answer to a request that is sent in parts; None if there is none."""
        try:
            async with asyncio.timeout(LONGEST):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
                try:
                    return await _talk(reader, writer, parts, pause)
                finally:
                    writer.close()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return None

    async def repeat(self, step: Callable[[int], Awaitable[None]], first: int) -> None:
        """Repeat what a client does until the time is over; do it once in any case."""
        number = first
        while number == first or time.monotonic() < self.end:
            await step(number)
            number += 1

    async def good(self, number: int) -> None:
        """Ask for one text, and check the answer."""
        text = self.texts[number % len(self.texts)]
        answer = await self.exchange(request_bytes(json.dumps({"text": text}).encode()))
        await self._check(answer, lambda value: [value], [(text, 1)])

    async def heavy(self, number: int) -> None:
        """Ask for what takes long, and check the answer."""
        text, nbest = self.hard[number % len(self.hard)]
        answer = await self.exchange(request_bytes(json.dumps({"text": text, "nbest": nbest}).encode()))
        await self._check(answer, lambda value: [value], [(text, nbest)])

    async def many(self, number: int) -> None:
        """Ask for many texts, and check the answers."""
        texts = [self.texts[(number + place) % len(self.texts)] for place in range(MANY)]
        answer = await self.exchange(request_bytes(json.dumps({"texts": texts}).encode()))
        await self._check(answer, lambda value: list(value["results"]), [(text, 1) for text in texts])

    async def _check(
        self, answer: Answer | None, read: Callable[[Any], list[dict[str, Any]]], asked: Sequence[tuple[str, int]]
    ) -> None:
        if answer is None:
            self.counts["lost"] += 1
        elif answer.status == 200:
            found = read(json.loads(answer.body))
            is_right = [without_times(value) for value in found] == [self.expected[one] for one in asked]
            self.counts["answered" if is_right else "wrong"] += 1
        else:
            is_clean = answer.is_refusal(REFUSALS)
            self.counts["refused" if is_clean else "wrong"] += 1
            self.counts["refused_requests"] += b"too-many-requests" in answer.body
            await asyncio.sleep(PAUSE)

    async def bad(self, number: int) -> None:
        """Send what must be refused."""
        request, status = BAD_REQUESTS[number % len(BAD_REQUESTS)]
        await self._expect(await self.exchange(request), (status, 503))

    async def slow(self, number: int) -> None:
        """Send too slowly."""
        whole = request_bytes(b'{"text": "call mom"}')
        head, body = whole[:-20], whole[-20:]
        ways = ((head, *(body[place : place + 1] for place in range(19))), (head + body[:5],))
        await self._expect(await self.exchange(*ways[number % len(ways)], pause=0.5), (408, 503))

    async def idle(self, number: int) -> None:
        """Open a connection without a request."""
        _, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        writer.write((b"", b"POST /v1", b"this is not HTTP\r\n\r\n")[number % 3])
        await asyncio.sleep(1)
        writer.close()

    async def _expect(self, answer: Answer | None, statuses: Sequence[int]) -> None:
        if answer is None:
            self.counts["lost"] += 1
        else:
            self.counts["refused_bad" if answer.is_refusal(statuses) else "wrong"] += 1
        await asyncio.sleep(PAUSE)

    async def leaving(self, number: int) -> None:
        """Go away before the answer."""
        _, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        writer.write(request_bytes(json.dumps({"texts": self.texts[:MANY]}).encode()))
        await asyncio.sleep(0.01 * (number % 10))
        writer.close()
        self.counts["left"] += 1
        await asyncio.sleep(PAUSE)

    async def watch_memory(self, sizes: list[float]) -> None:
        """Note the memory of the server, at least once in each fifth of the time, and show how far this is."""
        begin = time.monotonic()
        with ProgressBars() as bars:
            while len(sizes) < 5 or time.monotonic() < self.end:
                sizes.append(self.server.megabytes())
                bars.update("overload", time.monotonic() - begin, self.end - begin)
                await asyncio.sleep(0.2)


BAD_REQUESTS: list[tuple[bytes, int]] = [
    (request_bytes(b'{"text": "call'), 400),
    (request_bytes(b"[" * 100_000), 400),
    (request_bytes(b'{"text": "call mom"}').replace(b"application/json", b"text/plain"), 415),
    (request_bytes(b'{"text": "' + b"a" * (2 << 20) + b'"}'), 413),
    (request_bytes(json.dumps({"texts": ["call mom"] * 1000}).encode()), 422),
    (request_bytes(b'{"text": "call mom", "nbest": 10000}'), 422),
    (request_bytes(b'{"text": "call mom"}', "/v1/nothing"), 404),
]


async def _talk(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, parts: Sequence[bytes], pause: float
) -> Answer:
    sending = asyncio.ensure_future(_send(writer, parts, pause))
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
        body = await reader.readexactly(int(fields["content-length"]))
        return Answer(int(head[9:12]), fields["content-type"], body, "retry-after" in fields)
    finally:
        sending.cancel()


async def _send(writer: asyncio.StreamWriter, parts: Sequence[bytes], pause: float) -> None:
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(pause)


async def _run(server: Server, seconds: float, expected: Mapping[tuple[str, int], Any]) -> dict[str, float]:
    crowd = Crowd(server, expected, time.monotonic() + seconds)
    sizes: list[float] = []
    groups = (
        (crowd.good, GOOD),
        (crowd.many, LISTS),
        (crowd.heavy, HEAVY),
        (crowd.bad, BAD),
        (crowd.slow, SLOW),
        (crowd.idle, IDLE),
        (crowd.leaving, LEAVING),
    )
    clients = [crowd.repeat(step, 7 * place) for step, n in groups for place in range(n)]
    await asyncio.gather(crowd.watch_memory(sizes), *clients)
    begin = time.perf_counter()
    counts_before = crowd.counts["answered"]
    await crowd.good(0)
    fifth = max(1, len(sizes) // 5)
    return {
        **{f"overload_{name}": crowd.counts[name] for name in COUNTS},
        "overload_megabytes": statistics.median(sizes[-fifth:]),
        "overload_growth_megabytes": statistics.median(sizes[-fifth:]) - statistics.median(sizes[fifth : 2 * fifth]),
        "overload_answered_after": crowd.counts["answered"] - counts_before,
        "overload_seconds_after": time.perf_counter() - begin,
    }


def make_questions(parser: Parser, texts: Sequence[str]) -> list[tuple[str, int]]:
    """Return texts with how many candidates are asked for: all of them with one, some with more, and some long ones."""
    words = " ".join(texts).split()
    n_words = parser.subwords.max_length // 4  # a word may be several subwords
    long = [" ".join(words[place : place + n_words]) for place in range(3)]
    some = [*texts[: len(CANDIDATES)], *long]
    return [*((text, 1) for text in (*texts, *long)), *zip(some, CANDIDATES * 2, strict=True)]


def overload(model: str, seconds: float, texts: Sequence[str]) -> dict[str, float]:
    """Return what came of so many seconds with more clients than a server can answer."""
    parser = Parser.load(model)
    expected = {(text, nbest): expected_of(parser, text, nbest) for text, nbest in make_questions(parser, texts)}
    with serving(model, *OPTIONS) as server:
        return asyncio.run(_run(server, seconds, expected))
