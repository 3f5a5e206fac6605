"""Runs the server: one process, one address, until it is told to stop; then it finishes what it has accepted."""

from __future__ import annotations

import errno
import gc
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

import uvicorn
from fastapi import FastAPI

from treepiece.errors import OptionError
from treepiece.runtime.parser import Parser
from treepiece.serving.app import create_app
from treepiece.serving.connections import connection_class
from treepiece.serving.logs import log, log_to
from treepiece.serving.service import Service
from treepiece.serving.settings import Settings

_BACKLOG = 1024
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LARGEST_HEAD = 1 << 15
_REASONS = {
    errno.EADDRINUSE: "another program listens there already: stop it, or choose another port (0 is any that is free)",
    errno.EACCES: "this needs rights that you do not have: choose a port of 1024 or more",
    errno.EADDRNOTAVAIL: "this machine has no such address: 127.0.0.1 is this machine alone, 0.0.0.0 all its addresses",
}


def run_server(
    load: Callable[[], Parser], settings: Settings, *, host: str, port: int, on_start: Callable[[str], None]
) -> None:
    """Serve a parser until SIGTERM or SIGINT; `on_start` is told the address once requests are answered.

    The port is taken before the model is loaded: that it is not free should be told at once.
    """
    with listen(host, port) as listener, _stoppable():
        address = url(listener)
        app = create_app(load(), settings)
        log_to(sys.stderr)
        gc.collect()
        gc.freeze()  # what is loaded now stays: looking through it again and again would only take time
        service: Service = app.state.service

        def started() -> None:
            names = ("name", "kind", "version", "precision", "threads")
            log("serving", {"url": address, "model": {name: service.description[name] for name in names}})
            on_start(address)

        server = Server(server_config(app), service, started)
        for number in _SIGNALS:
            # uvicorn has this handler too while it runs. It begins and ends with what it finds: a signal before is
            # heard, and the one that it sends itself again when it has done all that it asks for changes nothing.
            signal.signal(number, server.handle_exit)
        server.run(sockets=[listener])
        log("stopped", {})


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let a signal interrupt what is done before the server listens to signals itself.

    The first process of a container has no handler for SIGTERM unless it sets one: it would be deaf while it loads.
    """
    before = {number: signal.signal(number, signal.default_int_handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def server_config(app: FastAPI) -> uvicorn.Config:
    """Return how uvicorn runs an application."""
    service: Service = app.state.service
    settings = service.settings
    return uvicorn.Config(
        app,
        http=connection_class(settings, service.refuse),
        ws="none",
        lifespan="on",
        loop="auto",  # uvloop where it is installed: a tenth more answers a second than with asyncio's own
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=settings.idle_seconds,  # type: ignore[arg-type]  # any number will do
        timeout_graceful_shutdown=round(settings.stop_seconds) or 1,
        h11_max_incomplete_event_size=_LARGEST_HEAD,
    )


class Server(uvicorn.Server):
    """Says when it answers, and goes on for a while after it was told to stop, if that is wished."""

    def __init__(self, config: uvicorn.Config, service: Service, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._on_start = on_start
        self._end: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; from now on every answer tells its client to come back elsewhere."""
        if self._end is None and self._service.settings.drain_seconds:
            self._captured_signals.append(sig)
            self._end = monotonic() + self._service.settings.drain_seconds
        else:
            super().handle_exit(sig, frame)
        self._service.is_stopping = True

    async def on_tick(self, counter: int) -> bool:
        """Return whether it is time to stop."""
        if self._end is not None and monotonic() >= self._end:
            self.should_exit = True
        return await super().on_tick(counter)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; raise with what to do where that cannot be."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise OptionError(f"--host {host}: there is no such address") from None
    try:
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror)
        raise OptionError(f"--host {host} --port {port}: cannot be listened on: {reason}") from None


def url(listener: socket.socket) -> str:
    """Return the address of a socket for people and programs."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
