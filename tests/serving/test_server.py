"""A real server on a real port: connections, too many of them, and clients that do not speak HTTP."""

import json
import socket
import time
from contextlib import ExitStack, suppress

import pytest
from serving_tools import (
    LONGEST,
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
from treepiece.serving import connections
from treepiece.serving.app import create_app
from treepiece.serving.settings import Settings

TEXTS = [utterance for _, utterance, _ in toy_rows(40)]
MOST_CONNECTIONS = 6
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
        assert kind(read_answer(connection)) == (400, "broken-request")


def test_what_a_connection_refuses_is_named_counted_and_logged(parser, caplog):
    app = create_app(parser, Settings(**PATIENT))
    broken = b"POST /v1/parse HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\nHost: a\r\n"
    with caplog.at_level("INFO", "treepiece.serving"), served(app) as port:
        names = []
        for first, second in ((b"hello\r\n\r\n", b""), (broken + b"X-Request-ID: mine\r\n\r\n", b"nothing\r\n")):
            with connect(port) as connection:
                connection.sendall(first)
                if second:  # the head is read before the body comes: that request is under way, and the one that asks
                    wait_until_metrics_say(port, "treepiece_requests_under_way 2.0")
                    connection.sendall(second)
                answer = read_answer(connection)
                assert kind(answer) == (400, "broken-request")
                names.append(answer[1]["x-request-id"])
        wait_until_metrics_say(port, 'treepiece_requests_total{method="other",path="other",status="400"} 1.0')
        wait_until_metrics_say(port, 'treepiece_requests_total{method="POST",path="/v1/parse",status="400"} 1.0')
        wait_until_metrics_say(port, 'treepiece_problems_total{type="broken-request"} 2.0')
    assert names[1] == "mine"
    records = [record for record in caplog.records if record.name == "treepiece.serving"]
    fields = [record.fields for record in records if record.fields["path"] != "/metrics"]
    assert [(line["id"], line["status"], line["problem"]) for line in fields] == [
        (name, 400, "broken-request") for name in names
    ]


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


@pytest.fixture
def narrow(parser):
    """The port of a server of its own: where connections are counted, those of other tests must not be there."""
    with served(create_app(parser, Settings(**PATIENT, connections=MOST_CONNECTIONS))) as port:
        yield port


def test_too_many_connections(narrow):
    port = narrow
    opened = [connect(port) for _ in range(MOST_CONNECTIONS)]
    try:
        for connection in opened:
            connection.sendall(REQUEST)
            assert read_answer(connection)[0] == 200
        with connect(port) as another:
            answer = read_answer(another)
            assert kind(answer) == (503, "too-many-connections")
            assert answer[1]["retry-after"] == "1"
        opened[0].sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b'treepiece_problems_total{type="too-many-connections"} 1.0' in read_answer(opened[0])[2]
    finally:
        for connection in opened:
            connection.close()

    def is_free():
        with connect(port) as connection:
            connection.sendall(REQUEST)
            return read_answer(connection)[0] == 200

    wait_until(is_free, "the places of connections that were closed are not free again")  # closing takes a moment


@pytest.mark.parametrize("lingering", [64, 0])
def test_who_is_refused_can_read_it_even_while_sending(narrow, monkeypatch, lingering):
    """Where too many linger already, it is told all the same, to whoever is not sending."""
    monkeypatch.setattr(connections, "LINGER", LONGEST)
    monkeypatch.setattr(connections, "MOST_LINGERING", lingering)
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            connection = stack.enter_context(connect(narrow))
            connection.sendall(REQUEST)
            assert read_answer(connection)[0] == 200
        with connect(narrow) as another:
            for _ in range(20 if lingering else 0):
                another.sendall(REQUEST)
                time.sleep(0.005)  # the first ones are there before the refusal is sent, and the others after that
            assert kind(read_answer(another)) == (503, "too-many-connections")
            assert another.recv(1) == b""


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
