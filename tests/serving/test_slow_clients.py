"""A real server on a real port, and clients that are too slow for it.

A machine that stands still for a moment is slow too. So a server here is impatient in one thing only, the one that is
tested, and waits for all else as long as it takes.
"""

import socket
import sys
import threading
from contextlib import suppress

import pytest
from serving_tools import (
    LONGEST,
    PATIENT,
    connect,
    kind,
    metrics,
    read_answer,
    request_bytes,
    served,
    wait_until,
)

from treepiece.serving.app import create_app
from treepiece.serving.settings import Settings

QUICK = 0.3
"""Seconds of patience, where the end of it is what is tested."""
OPENAPI_COUNT = 'treepiece_requests_total{method="GET",path="/openapi.json",status="200"}'
REQUEST = request_bytes(b'{"text": "call mom"}')


@pytest.fixture(scope="module")
def quick(parser):
    """The port of a server that does not wait for a body."""
    with served(create_app(parser, Settings(**{**PATIENT, "body_seconds": QUICK}))) as port:
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


def test_an_idle_connection_is_closed(parser):
    with served(create_app(parser, Settings(**{**PATIENT, "idle_seconds": 1}))) as port, connect(port) as connection:
        connection.sendall(REQUEST)
        assert read_answer(connection)[0] == 200
        assert is_closed(connection)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends connections of clients that do not read")
def test_a_client_that_does_not_read(parser):
    settings = Settings(**{**PATIENT, "answer_seconds": QUICK})
    with served(create_app(parser, settings)) as port, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(LONGEST)
        connection.connect(("127.0.0.1", port))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 600)

        def is_given_up():
            """Whether some requests were answered, no more are, and none is under way but the one that asks."""
            seen = [metrics(port) for _ in range(5)]
            counts = {line for lines in seen for line in lines if line.startswith(OPENAPI_COUNT)}
            return len(counts) == 1 and all("treepiece_requests_under_way 1.0" in lines for lines in seen)

        wait_until(is_given_up, "a client that does not read is not given up")
        read = 0
        with suppress(ConnectionResetError, TimeoutError):
            while part := connection.recv(1 << 16):
                read += len(part)
        with connect(port) as another:
            another.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n")
            assert read < 600 * len(read_answer(another)[2])
