"""A real server on a real port, and clients that are too slow for it.

A machine that stands still for a moment is slow too. So a server here is impatient in one thing only, the one that is
tested, and waits for all else as long as it takes.
"""

import socket
import threading
from contextlib import ExitStack, suppress

import pytest
from serving_tools import (
    LONGEST,
    PATIENT,
    connect,
    kind,
    read_answer,
    request_bytes,
    served,
    wait_until,
    wait_until_metrics_say,
)

from treepiece.serving import connections, run
from treepiece.serving.app import create_app
from treepiece.serving.settings import Settings

QUICK = 0.3
"""Seconds of patience, where the end of it is what is tested."""
REQUEST = request_bytes(b'{"text": "call mom"}')


@pytest.fixture(scope="module")
def quick(parser):
    """The port of a server that does not wait for a body, or for a head after the first request of a connection.

    A machine that stands still for a moment must not make the first head too slow.
    """

    def connection_class(*arguments):
        class Connection(connections.connection_class(*arguments)):
            patience = property(lambda self: PATIENT["head_seconds"] if self.cycle is None else QUICK)

        return Connection

    settings = Settings(**{**PATIENT, "body_seconds": QUICK})
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # for this server alone
            patch.setattr(run, "connection_class", connection_class)
            port = stack.enter_context(served(create_app(parser, settings)))
        yield port


def is_closed(connection):
    """Whether the server has closed a connection, or does within a short time."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [REQUEST[:-5], REQUEST[: REQUEST.index(b"\r\n\r\n") + 4]])
def test_a_slow_body(quick, sent):
    with connect(quick) as connection:
        connection.sendall(sent)
        assert kind(read_answer(connection)) == (408, "slow-request")
        assert is_closed(connection)


@pytest.mark.parametrize("sent", [b"", b"POST /v1", REQUEST[:40]])
def test_a_slow_head(parser, sent):
    settings = Settings(**{**PATIENT, "head_seconds": QUICK})
    with served(create_app(parser, settings)) as port, connect(port) as connection:
        connection.sendall(sent)
        assert kind(read_answer(connection)) == (408, "slow-request")
        assert is_closed(connection)


def test_a_slow_head_after_a_request(quick):
    with connect(quick) as connection:
        connection.sendall(REQUEST + b"POST /v1")
        assert read_answer(connection)[0] == 200
        assert kind(read_answer(connection)) == (408, "slow-request")
        assert is_closed(connection)


def test_a_body_that_drips(quick):
    stop = threading.Event()

    def drip(connection):
        try:
            while not stop.wait(0.05):
                connection.sendall(b" ")
        except OSError:
            pass

    with connect(quick) as connection:
        connection.sendall(request_bytes(b" " * 100_000)[:-100_000])
        dripping = threading.Thread(target=drip, args=(connection,))
        dripping.start()
        assert kind(read_answer(connection)) == (408, "slow-request")
        stop.set()
        dripping.join()


def test_a_huge_body_is_not_waited_for(quick):
    with connect(quick) as connection:
        head = REQUEST.replace(b"Content-Length: 20", b"Content-Length: 9000000000\r\nExpect: 100-continue")
        connection.sendall(head[: head.index(b"\r\n\r\n") + 4])
        assert kind(read_answer(connection)) == (413, "too-large")
        connection.sendall(b"a" * 1000)  # as if it had not heard
        assert is_closed(connection)


def test_a_client_that_does_not_read(parser, monkeypatch):
    lost = []
    is_lost = connections._Connection.connection_lost
    monkeypatch.setattr(
        connections._Connection, "connection_lost", lambda self, exc: (lost.append(self.client), is_lost(self, exc))
    )
    settings = Settings(**{**PATIENT, "answer_seconds": QUICK})
    with served(create_app(parser, settings)) as port, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(LONGEST)
        connection.connect(("127.0.0.1", port))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 600)
        wait_until(lambda: connection.getsockname() in lost, "a client that does not read is not given up")
        wait_until_metrics_say(port, "treepiece_requests_under_way 1.0")  # the one that asks, and nobody else
        read = 0
        with suppress(ConnectionResetError):
            while part := connection.recv(1 << 16):
                read += len(part)
        with connect(port) as another:
            another.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n")
            assert read < 600 * len(read_answer(another)[2])
