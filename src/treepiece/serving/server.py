"""Runs the server: one process, one address, until a signal; then it finishes accepted requests."""

from __future__ import annotations

import errno
import gc
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from types import FrameType

import uvicorn
from fastapi import FastAPI

from treepiece.errors import OptionError
from treepiece.runtime.parser import Parser
from treepiece.serving.app import create_app
from treepiece.serving.logs import log, log_to
from treepiece.serving.service import Service
from treepiece.serving.settings import Settings

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "[")
"""The names of the local machine. Older versions of Starlette read the host of `[::1]:8000` as `[`."""
_BACKLOG = 1024
_MAX_HEAD = 1 << 14
_ENDED = 0  # not the number of a signal
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_REASONS = {
    errno.EADDRINUSE: "another program listens there already: stop it, or choose another port (0 is any that is free)",
    errno.EACCES: "permission denied: choose a port of 1024 or more",
    errno.EADDRNOTAVAIL: "this machine has no such address: 127.0.0.1 is this machine alone, 0.0.0.0 all its addresses",
}


def run_server(
    load: Callable[[], Parser], settings: Settings, *, host: str, port: int, on_start: Callable[[str], None]
) -> None:
    """Serve a parser until SIGTERM or SIGINT; `on_start` gets the address once requests are answered.

    The port is bound before the model is loaded, so that a port in use is reported at once.
    """
    signals: SimpleQueue[int] = SimpleQueue()
    with listen(host, port, settings) as listener, _signals_to(signal.default_int_handler):
        address = url(listener)
        app = create_app(load(), replace(settings, allowed_hosts=allowed_hosts(listener, settings)))
        log_to(sys.stderr)
        gc.collect()
        gc.freeze()  # loaded objects stay, so the garbage collector need not scan them again
        service: Service = app.state.service
        ended = partial(signals.put, _ENDED)
        with _signals_to(lambda number, _: signals.put(number)), running(app, listener, ended) as server:
            names = ("name", "kind", "version", "precision", "threads")
            log("serving", {"url": address, "model": {name: service.description[name] for name in names}})
            on_start(address)
            if signals.get() == _ENDED:
                raise RuntimeError("the server ended by itself; the log says why")
            service.is_stopping = True  # from now on every answer closes its connection
            with suppress(Empty):  # a second signal ends the wait
                signals.get(timeout=settings.drain_seconds)
            server.should_exit = True
        log("stopped", {})


@contextmanager
def _signals_to(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle the signals that stop the server.

    The first process of a container ignores SIGTERM unless it sets a handler, also while it loads.
    """
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def running(
    app: FastAPI, listener: socket.socket, on_end: Callable[[], None] = lambda: None
) -> Iterator[uvicorn.Server]:
    """Run an application in a thread, where uvicorn does not handle signals; stop it at the end."""
    settings: Settings = app.state.service.settings
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="on",
            loop="auto",  # uvloop if it is installed
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_keep_alive=round(settings.idle_seconds) or 1,
            timeout_graceful_shutdown=round(settings.stop_seconds) or 1,
            h11_max_incomplete_event_size=_MAX_HEAD,
        )
    )

    def run() -> None:
        try:
            server.run([listener])
        finally:
            on_end()

    thread = threading.Thread(target=run, name="treepiece-server")
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start; the log says why")
            time.sleep(0.005)
        yield server
    finally:
        server.should_exit = True
        thread.join()


def listen(host: str, port: int, settings: Settings) -> socket.socket:
    """Return a socket that listens at an address; raise with a remedy if that is impossible."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise OptionError(f"--host {host}: there is no such address") from None
    try:
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror)
        raise OptionError(f"--host {host} --port {port}: cannot be listened on: {reason}") from None
    if sys.platform == "linux":  # connections inherit this: the system closes those of clients that do not read
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(settings.answer_seconds * 1e3))
    return listener


def allowed_hosts(listener: socket.socket, settings: Settings) -> tuple[str, ...]:
    """Return the names by which clients may address a server that listens on a socket; none allows every name.

    A server on loopback has only clients on its own machine. Without this check, a web page could be one, too: if its
    name resolves to 127.0.0.1, the browser takes the server for the page's own site (DNS rebinding).
    """
    address = listener.getsockname()[0]
    if not settings.allowed_hosts and not ip_address(address).is_loopback:
        return ()
    name = f"[{address}]" if ":" in address else address
    return tuple(dict.fromkeys((*LOOPBACK_NAMES, name, *settings.allowed_hosts)))


def url(listener: socket.socket) -> str:
    """Return the address of a socket as a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
