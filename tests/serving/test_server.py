"""A real server on a real port: slow clients, too many of them, and those that do not speak HTTP."""

import asyncio
import json
import socket
import threading
import time
from contextlib import suppress

import pytest
from serving_tools import block, connect, expected, plain, read_answer, request_bytes, served

from treepiece.data.toy import toy_rows
from treepiece.serving.app import create_app
from treepiece.serving.settings import Settings

TEXTS = [utterance for _, utterance, _ in toy_rows(40)]
QUICK = Settings(body_seconds=0.3, head_seconds=0.3, connections=6)
REQUEST = request_bytes(b'{"text": "call mom"}')


@pytest.fixture(scope="module")
def port(parser):
    with served(create_app(parser, QUICK)) as port:
        yield port


def kind(answer):
    status, headers, body = answer
    assert headers["content-type"] == "application/problem+json"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    value = json.loads(body)
    assert value["status"] == status
    assert value["request_id"] == headers["x-request-id"]
    return status, value["type"].removeprefix("/docs#")


def is_closed(connection):
    """Whether the server has closed a connection, or does within a short time."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


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


@pytest.mark.parametrize("sent", [REQUEST[:-5], REQUEST[: REQUEST.index(b"\r\n\r\n") + 4]])
def test_a_slow_body(port, sent):
    with connect(port) as connection:
        connection.sendall(sent)
        assert kind(read_answer(connection)) == (408, "slow-request")
        assert is_closed(connection)


@pytest.mark.parametrize("sent", [b"", b"POST /v1", REQUEST[:40], REQUEST + b"POST /v1"])
def test_a_slow_head(port, sent):
    with connect(port) as connection:
        connection.sendall(sent)
        if sent.startswith(REQUEST):
            assert read_answer(connection)[0] == 200
        assert kind(read_answer(connection)) == (408, "slow-request")
        assert is_closed(connection)


def test_a_body_that_drips(port):
    stop = threading.Event()

    def drip(connection):
        try:
            while not stop.wait(0.05):
                connection.sendall(b" ")
        except OSError:
            pass

    with connect(port) as connection:
        connection.sendall(request_bytes(b" " * 1000)[:-1000])
        dripping = threading.Thread(target=drip, args=(connection,))
        dripping.start()
        assert kind(read_answer(connection)) == (408, "slow-request")
        stop.set()
        dripping.join()


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
        connection.sendall(sent)
        assert kind(read_answer(connection)) == (400, "broken-request")


def test_what_a_connection_refuses_is_named_counted_and_logged(parser, caplog):
    app = create_app(parser, QUICK)
    broken = b"POST /v1/parse HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\nHost: a\r\n"
    with caplog.at_level("INFO", "treepiece.serving"), served(app) as port:
        names = []
        for first, second in ((b"hello\r\n\r\n", b""), (broken + b"X-Request-ID: mine\r\n\r\n", b"nothing\r\n")):
            with connect(port) as connection:
                connection.sendall(first)
                time.sleep(0.1)  # the head is read before the body comes
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


def test_a_huge_body_is_not_waited_for(port):
    with connect(port) as connection:
        head = REQUEST.replace(b"Content-Length: 20", b"Content-Length: 9000000000\r\nExpect: 100-continue")
        connection.sendall(head[: head.index(b"\r\n\r\n") + 4])
        assert kind(read_answer(connection)) == (413, "too-large")
        connection.sendall(b"a" * 1000)  # as if it had not heard
        assert is_closed(connection)


def test_chunks(port):
    with connect(port) as connection:
        head = REQUEST[: REQUEST.index(b"\r\n\r\n")].replace(b"Content-Length: 20", b"Transfer-Encoding: chunked")
        connection.sendall(head + b'\r\n\r\n5\r\n{"tex\r\nf\r\nt": "call mom"}\r\n0\r\n\r\n')
        status, _, body = read_answer(connection)
        assert (status, json.loads(body)["text"]) == (200, "call mom")


def test_too_many_connections(port):
    opened = [connect(port) for _ in range(QUICK.connections)]
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
    for _ in range(100):  # closing takes a moment
        with connect(port) as connection:
            connection.sendall(REQUEST)
            if read_answer(connection)[0] == 200:
                return
    raise AssertionError("the places of connections that were closed are not free again")


def test_a_client_that_does_not_read(parser):
    with served(create_app(parser, Settings(answer_seconds=0.3))) as port, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", port))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 600)
        wait_until_metrics_say(port, "treepiece_requests_under_way 2.0")  # one that is not read, and this one
        wait_until_metrics_say(port, "treepiece_requests_under_way 1.0")  # this one alone: the other was given up
        read = 0
        with suppress(ConnectionResetError):
            while part := connection.recv(1 << 16):
                read += len(part)
        with connect(port) as another:
            another.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n")
            assert read < 600 * len(read_answer(another)[2])


def wait_until_metrics_say(port, line):
    for _ in range(300):
        with connect(port) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
            if line in read_answer(connection)[2].decode().splitlines():
                return
        time.sleep(0.02)
    raise AssertionError(line)


def test_a_client_that_goes_away_gives_its_place_back(parser):
    app = create_app(parser, Settings(queue=2, batch_size=1))
    gate = block(app)
    batcher = app.state.service.batcher

    async def until(is_true):
        async with asyncio.timeout(30):
            while not is_true():
                await asyncio.sleep(0.005)

    with served(app) as port:
        busy = [connect(port) for _ in range(2)]
        for connection in busy:
            connection.sendall(REQUEST)
        asyncio.run(until(lambda: batcher._under_way == 2))
        waiting = connect(port)
        waiting.sendall(request_bytes(b'{"texts": ["call mom", "call dad"]}'))
        asyncio.run(until(lambda: batcher.waiting == 2))
        waiting.shutdown(socket.SHUT_RDWR)
        waiting.close()
        asyncio.run(until(lambda: batcher.waiting == 0))
        gate.go.set()
        for connection in busy:
            assert read_answer(connection)[0] == 200
            connection.close()
    assert gate.sizes == [1, 1]
