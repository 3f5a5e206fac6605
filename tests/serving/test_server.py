"""A real server on a real port: connections, too many of them, and clients that do not speak HTTP."""

import json
import socket
from contextlib import ExitStack, suppress

import pytest
from serving_tools import (
    PATIENT,
    block,
    connect,
    expected,
    kind,
    plain,
    read_answer,
    request_bytes,
    served,
    wait_until,
    wait_until_metrics_say,
)

from treepiece.data.toy import toy_rows
from treepiece.serving.app import create_app
from treepiece.serving.settings import Settings

TEXTS = [utterance for _, utterance, _ in toy_rows(40)]
REQUEST = request_bytes(b'{"text": "call mom"}')


@pytest.fixture(scope="module")
def port(parser):
    with served(create_app(parser, Settings(**PATIENT))) as port:
        yield port


def test_a_connection_is_kept(port, parser):
    with connect(port) as connection:
        for text in TEXTS[:3]:
            connection.sendall(request_bytes(json.dumps({"text": text}).encode()))
            status, headers, body = read_answer(connection)
            assert status == 200
            assert "server" not in headers
            assert plain(json.loads(body)) == expected(parser, text)


def test_head(port):
    with connect(port) as connection:
        for path in ("livez", "v1/model", "docs", "nothing"):
            connection.sendall(f"HEAD /{path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            received = b""
            while b"\r\n\r\n" not in received:
                received += connection.recv(1 << 16)
            head, _, body = received.partition(b"\r\n\r\n")
            assert (head.split()[1], body) == (b"404" if path == "nothing" else b"200", b"")
        connection.sendall(REQUEST)  # what comes next on the connection is its answer, and nothing else
        assert read_answer(connection)[0] == 200


def test_requests_that_are_sent_before_the_answer_came(port):
    with connect(port) as connection:
        connection.sendall(3 * REQUEST)
        file = connection.makefile("rb")
        for _ in range(3):
            assert file.readline() == b"HTTP/1.1 200 OK\r\n"
            length = 0
            while line := file.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split()[1])
            assert json.loads(file.read(length))["text"] == "call mom"


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00\r\n\r\n" * 3,
        b"POST /v1/parse HTTP/1.1\r\nContent-Length: many\r\nHost: a\r\n\r\n",
        b"POST /v1/parse HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a\r\n\r\nnothing\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100_000,
        b"GET /v1/model HTTP/1.1\r\n\r\n",
    ],
    ids=["words", "tls", "length", "chunks", "head", "host"],
)
def test_what_is_not_http(port, sent):
    with connect(port) as connection:
        with suppress(ConnectionError):  # the server may refuse before all of it is sent
            connection.sendall(sent)
        with connection.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 400 Bad Request\r\n"
            assert b"Invalid HTTP request received." in answer.read()  # and the connection is closed


def test_a_huge_body(port):
    """It is refused, and a client that sends all of it all the same can read that, and go on."""
    with connect(port) as connection:
        connection.sendall(request_bytes(b"a" * (8 << 20)))
        assert kind(read_answer(connection)) == (413, "too-large")
        connection.sendall(REQUEST)
        assert read_answer(connection)[0] == 200


def test_chunks(port):
    with connect(port) as connection:
        head = REQUEST[: REQUEST.index(b"\r\n\r\n")].replace(b"Content-Length: 20", b"Transfer-Encoding: chunked")
        connection.sendall(head + b'\r\n\r\n5\r\n{"tex\r\nf\r\nt": "call mom"}\r\n0\r\n\r\n')
        status, _, body = read_answer(connection)
        assert (status, json.loads(body)["text"]) == (200, "call mom")


def test_too_many_requests(parser):
    """One more than may be under way is refused at once; health checks and metrics never are."""
    app = create_app(parser, Settings(**PATIENT, concurrency=3))
    gate = block(app)
    with served(app) as port, ExitStack() as stack:
        busy = [stack.enter_context(connect(port)) for _ in range(3)]
        for connection in busy:
            connection.sendall(REQUEST)
        wait_until_metrics_say(port, "treepiece_requests_under_way 4.0")  # and the one that asks
        with connect(port) as another:
            another.sendall(REQUEST)
            answer = read_answer(another)
            assert kind(answer) == (503, "too-many-requests")
            assert answer[1]["retry-after"] == "1"
            another.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_answer(another)[0] == 200
        wait_until_metrics_say(port, 'treepiece_problems_total{type="too-many-requests"} 1.0')
        gate.go.set()
        for connection in busy:
            assert read_answer(connection)[0] == 200
        busy[0].sendall(REQUEST)
        assert read_answer(busy[0])[0] == 200


def test_idle_connections_are_in_nobodys_way(parser):
    """However many are open without a request, they do not count as requests."""
    with served(create_app(parser, Settings(**PATIENT, concurrency=2))) as port, ExitStack() as stack:
        for sent in (b"", b"POST /v1", REQUEST[:40]) * 20:
            stack.enter_context(connect(port)).sendall(sent)
        with connect(port) as connection:
            connection.sendall(REQUEST)
            assert read_answer(connection)[0] == 200


def test_a_client_that_goes_away_gives_its_place_back(parser):
    app = create_app(parser, Settings(**PATIENT, queue=2, batch_size=1))
    gate = block(app)
    batcher = app.state.service.batcher

    with served(app) as port:
        busy = [connect(port) for _ in range(2)]
        for connection in busy:
            connection.sendall(REQUEST)
        wait_until(lambda: batcher._under_way == 2, "nobody is answered")
        waiting = connect(port)
        waiting.sendall(request_bytes(b'{"texts": ["call mom", "call dad"]}'))
        wait_until(lambda: batcher.waiting == 2, "nobody waits")
        waiting.shutdown(socket.SHUT_RDWR)
        waiting.close()
        wait_until(lambda: batcher.waiting == 0, "who went away still waits")
        gate.go.set()
        for connection in busy:
            assert read_answer(connection)[0] == 200
            connection.close()
    assert gate.sizes == [1, 1]
