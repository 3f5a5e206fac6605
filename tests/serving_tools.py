"""Clients and servers for the tests of `treepiece.serving`."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager, contextmanager

PROGRAM = [sys.executable, "-c", "from treepiece.cli.main import run; run()", "serve"]
LONGEST = 60
"""How many seconds a test waits for what comes at once: a busy machine may stand still for some of them."""
PATIENT = {"answer_seconds": 300, "body_seconds": 300, "idle_seconds": 300}
"""Settings of a server that nobody can be too slow for: a test of anything else must not end because time passes."""


def plain(value):
    """An answer without its milliseconds, which are never the same."""
    return {name: part for name, part in value.items() if name != "milliseconds"}


def expected(parser, text, **options):
    """What the library says of a text, as JSON says it."""
    return plain(json.loads(json.dumps(parser(text, **options).to_dict())))


@asynccontextmanager
async def client_of(app, **options):
    import httpx

    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", **options) as client:
        yield client


def ask(app, method, path, **options):
    """The answer to one request, without a server in between."""

    async def main():
        async with client_of(app) as client:
            return await client.request(method, path, **options)

    return asyncio.run(main())


class Blocked:
    """Work that waits until it is let go, in place of a parser's."""

    def __init__(self, work):
        self.work = work
        self.go = threading.Event()
        self.sizes = []

    def __call__(self, task, items):
        assert self.go.wait(LONGEST)
        self.sizes.append(len(items))
        return self.work(task, items)


def block(app):
    """Make the parser of an application wait; return what lets it go."""
    batcher = app.state.service.batcher
    batcher.work = Blocked(batcher.work)
    return batcher.work


async def until(is_true):
    """Wait until something holds."""
    async with asyncio.timeout(LONGEST):
        while not is_true():
            await asyncio.sleep(0.001)


@contextmanager
def served(app):
    """A real server in a thread; gives its port."""
    from treepiece.serving.server import listen, running

    with listen("127.0.0.1", 0, app.state.service.settings) as listener, running(app, listener):
        yield listener.getsockname()[1]


def reserve_port():
    """Return a socket that keeps a port, and the port: until it is closed nobody is given that who asks for any.

    Nobody listens on it, so that who asks for this very port still gets it, and gets it again.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    port = reserved.getsockname()[1]
    if sys.platform != "linux":  # elsewhere nobody could have it beside us
        reserved.close()
    return reserved, port


def request_bytes(body, *, path="/v1/parse", headers=""):
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n{headers}\r\n"
    ).encode() + body


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=LONGEST)


def read_answer(connection):
    """Status, headers and body of one answer; None if the connection was closed without one.

    Without a buffer: the answer after this one may be there already, and must not be read with it.
    """
    file = connection.makefile("rb", buffering=0)
    first = file.readline()
    if not first:
        return None
    headers = {}
    while line := file.readline().strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    body = b""
    while part := file.read(int(headers.get("content-length", 0)) - len(body)):
        body += part
    return int(first.split()[1]), headers, body


def kind(answer):
    """Status and type of an answer that is a problem, which must look like one."""
    status, headers, body = answer
    assert headers["content-type"] == "application/problem+json"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    value = json.loads(body)
    assert value["status"] == status
    assert value["request_id"] == headers["x-request-id"]
    return status, value["type"].removeprefix("/docs#")


def wait_until(is_true, complaint):
    """Wait until something holds that another thread or process sees to."""
    end = time.monotonic() + LONGEST
    while not is_true():
        assert time.monotonic() < end, complaint
        time.sleep(0.02)


def metrics(port):
    """The lines of a server's metrics."""
    with connect(port) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return read_answer(connection)[2].decode().splitlines()


def wait_until_metrics_say(port, line):
    """Wait until a server counts what it should."""
    wait_until(lambda: line in metrics(port), line)


class Process:
    """`treepiece serve` in a process of its own; its log is read as it comes."""

    def __init__(self, *options):
        self.process = subprocess.Popen([*PROGRAM, "--port", "0", *options], stderr=subprocess.PIPE, text=True)
        first = self.process.stderr.readline()
        assert first.startswith("{"), first
        self.log = [json.loads(first)]
        self.port = int(self.log[0]["url"].rpartition(":")[2])
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        self.log.extend(map(json.loads, self.process.stderr))

    def stop(self):
        """Send SIGTERM; return the exit code once it has stopped."""
        os.kill(self.process.pid, signal.SIGTERM)
        return self.wait()

    def wait(self):
        code = self.process.wait(3 * LONGEST)
        self._reader.join()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        self.process.stderr.close()
