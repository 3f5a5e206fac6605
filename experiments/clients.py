"""Clients of the server: many connections in one process, with little work of their own.

A client that shares the machine with the server takes from it what it uses itself, so requests are made before the
clock starts, answers are only cut out, and what they say is looked at afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from treepiece import Parser

LONGEST = 60.0  # seconds after which an answer counts as lost
STARTING = 120.0  # seconds that a server may take to start


def without_times(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer without its milliseconds, which are never the same."""
    return {name: part for name, part in value.items() if name != "milliseconds"}


def expected_of(parser: Parser, text: str, nbest: int = 1) -> dict[str, Any]:
    """Return what a server must answer: what the library says of a text alone."""
    return without_times(json.loads(json.dumps(parser(text, nbest=nbest).to_dict())))


def request_bytes(body: bytes, path: str = "/v1/parse") -> bytes:
    """Return a request as it goes over the wire."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


class Seen(NamedTuple):
    """An answer: which request it is for, how long it took, and what it says."""

    number: int
    seconds: float
    status: int
    body: bytes


@dataclass
class Load:
    """What came of some seconds of requests."""

    seen: list[Seen] = field(default_factory=list)
    lost: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """The processor time of server and clients together."""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.seen) / self.seconds


class _Connection(asyncio.Protocol):
    """Sends a request as soon as the one before is answered, until the time is over; one in any case."""

    def __init__(self, requests: Sequence[bytes], first: int, end: float, load: Load) -> None:
        self._requests = requests
        self._next = first
        self._end = end
        self._load = load
        self._buffer = b""
        self._begin = 0.0
        self._waits = False
        self._has_sent = False
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._begin = time.perf_counter()
        if self._has_sent and self._begin >= self._end:
            self._transport.close()
            return
        self._waits = self._has_sent = True
        self._transport.write(self._requests[self._next])

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, rest = self._buffer.partition(b"\r\n\r\n")
        if not blank:
            return
        lower = head.lower()
        start = lower.index(b"content-length:") + 15
        length = int(lower[start:].partition(b"\r\n")[0])
        if len(rest) < length:
            return
        self._buffer = b""
        self._waits = False
        self._load.seen.append(Seen(self._next, time.perf_counter() - self._begin, int(head[9:12]), rest))
        self._next = (self._next + 1) % len(self._requests)
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.lost += self._waits
        if not self.done.done():
            self.done.set_result(None)


class Server(NamedTuple):
    """A server that runs in a process of its own."""

    port: int
    pid: int

    def megabytes(self) -> float:
        """Return the memory that the server has."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return int(next(line.split()[1] for line in file if line.startswith("VmRSS"))) / 1024

    def cpu_seconds(self) -> float:
        """Return the processor time that the server has used."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def run_load(server: Server, requests: Sequence[bytes], connections: int, seconds: float) -> Load:
    """Return what comes of requests over so many connections, each with one at a time."""
    load = Load()
    loop = asyncio.get_running_loop()
    begin, used = time.perf_counter(), time.process_time() + server.cpu_seconds()
    clients = []
    for number in range(connections):
        first = number * len(requests) // connections  # all over, so that not everybody asks the same

        def make(first: int = first) -> _Connection:
            return _Connection(requests, first, begin + seconds, load)

        _, client = await loop.create_connection(make, "127.0.0.1", server.port)
        clients.append(client)
    _, late = await asyncio.wait([client.done for client in clients], timeout=seconds + LONGEST)
    load.lost += len(late)
    load.seconds = time.perf_counter() - begin
    load.cpu_seconds = time.process_time() + server.cpu_seconds() - used
    return load


@contextmanager
def serving(model: str, *options: str) -> Iterator[Server]:
    """Give a server, and stop it afterwards."""
    command = [sys.executable, "-m", "treepiece", "serve", "--model", model, "--port", "0", *options]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stderr=log)
        try:
            yield Server(_find_port(process, log.fileno()), process.pid)
        finally:
            process.terminate()
            process.wait(60)


def _find_port(process: subprocess.Popen[bytes], log: int) -> int:
    """Return the port that a server says it listens on."""
    end, written = time.monotonic() + STARTING, ""
    while time.monotonic() < end:
        with open(f"/proc/self/fd/{log}", encoding="utf-8") as file:
            written = file.read()
        for line in written.splitlines():
            if line.startswith("{") and line.endswith("}") and (value := json.loads(line))["event"] == "serving":
                return int(value["url"].rpartition(":")[2])
        if process.poll() is not None:
            sys.exit(f"the server did not start: {written.strip()}")
        time.sleep(0.05)
    sys.exit(f"the server did not say within {STARTING:g} seconds where it listens; it said: {written.strip()}")
