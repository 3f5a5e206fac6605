"""`treepiece serve` as users start and stop it."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from serving_tools import (
    LONGEST,
    PROGRAM,
    Process,
    connect,
    expected,
    plain,
    read_answer,
    request_bytes,
    wait_until_metrics_say,
)

from treepiece.data.toy import toy_rows
from treepiece.extras import install_command

pytestmark = pytest.mark.slow

TEXTS = list(dict.fromkeys(utterance for _, utterance, _ in toy_rows(80)))


def run(*options, **kwargs):
    return subprocess.run([*PROGRAM, *options], capture_output=True, text=True, timeout=300, check=False, **kwargs)


class Client(threading.Thread):
    """Sends one request after the other over one connection, until an answer says that the connection ends."""

    def __init__(self, port, first, begun):
        super().__init__()
        self.connection = connect(port)
        self.first = first
        self.begun = begun
        self.sent = 0
        self.answers = []
        self.is_told = False

    def run(self):
        with self.connection:
            while not self.is_told:
                text = TEXTS[(self.first + self.sent) % len(TEXTS)]
                self.connection.sendall(request_bytes(json.dumps({"text": text}).encode()))
                self.sent += 1
                answer = read_answer(self.connection)
                if answer is None:
                    return
                status, headers, body = answer
                self.answers.append((text, status, json.loads(body)))
                self.is_told = headers.get("connection") == "close"
                self.begun.release()


def test_nothing_that_was_accepted_is_lost_at_sigterm(tiny_bundle, parser):
    # A client that stands still between an answer and its next request must not look like one that has no more: the
    # server goes on until the second signal, which is sent when all clients have heard of the first.
    times = [part for name in ("idle", "answer", "stop", "drain") for part in (f"--{name}-seconds", "300")]
    with Process("--model", str(tiny_bundle), "--threads", "2", *times) as server:
        begun = threading.Semaphore(0)
        clients = [Client(server.port, 7 * number, begun) for number in range(12)]
        for client in clients:
            client.start()
        for _ in range(3 * len(clients)):
            assert begun.acquire(timeout=LONGEST)
        os.kill(server.process.pid, signal.SIGTERM)
        for client in clients:
            client.join(LONGEST)
        assert server.stop() == 0
    for client in clients:
        assert client.is_told
        assert len(client.answers) == client.sent
        for text, status, value in client.answers:
            assert (status, plain(value)) == (200, expected(parser, text))
    events = [record["event"] for record in server.log]
    assert (events[0], events[-1]) == ("serving", "stopped")
    assert events.count("request") == sum(client.sent for client in clients)
    assert {record["status"] for record in server.log if record["event"] == "request"} == {200}


def test_it_goes_on_for_a_while_if_that_is_wished(tiny_bundle):
    with Process("--model", str(tiny_bundle), "--threads", "1", "--drain-seconds", "600") as server:
        os.kill(server.process.pid, signal.SIGINT)
        statuses = set()
        while 503 not in statuses:  # the signal takes a moment
            with connect(server.port) as connection:
                connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                statuses.add(read_answer(connection)[0])
        with connect(server.port) as connection:
            connection.sendall(request_bytes(b'{"text": "call mom"}'))
            status, headers, _ = read_answer(connection)
            assert (status, headers["connection"]) == (200, "close")
        assert server.stop() == 0  # told once more, it does not go on


def test_it_stops_by_itself_after_that_while(tiny_bundle):
    with Process("--model", str(tiny_bundle), "--threads", "1", "--drain-seconds", "0.5") as server:
        assert server.stop() == 0
    assert server.log[-1]["event"] == "stopped"


def test_a_foreign_host_is_refused_on_loopback_unless_it_is_allowed(tiny_bundle):
    options = ("--allowed-host", "parse.example.org")
    with Process("--model", str(tiny_bundle), "--threads", "1", "--drain-seconds", "0", *options) as server:
        for host, status in (("evil.example", 400), ("localhost", 200), ("[::1]", 200), ("parse.example.org", 200)):
            with connect(server.port) as connection:
                head = f"GET /v1/model HTTP/1.1\r\nHost: {host}:{server.port}\r\nOrigin: http://{host}\r\n\r\n"
                connection.sendall(head.encode())
                assert read_answer(connection)[0] == status, host
        assert server.stop() == 0


def test_accepted_requests_are_answered_after_the_drain(tiny_bundle):
    """A request that is under way when the port closes is answered; idle connections do not keep the server up."""
    with Process("--model", str(tiny_bundle), "--threads", "1", "--drain-seconds", "0") as server:
        with connect(server.port) as idle, connect(server.port) as connection:
            request = request_bytes(b'{"text": "call mom"}')
            idle.sendall(request)
            assert read_answer(idle)[0] == 200
            connection.sendall(request[:-5])
            wait_until_metrics_say(server.port, "treepiece_requests_under_way 2.0")  # and the one that asks
            os.kill(server.process.pid, signal.SIGTERM)
            assert idle.recv(1) == b""
            connection.sendall(request[-5:])
            status, headers, _ = read_answer(connection)
            assert (status, headers["connection"]) == (200, "close")
        assert server.wait() == 0


def test_sigterm_while_it_loads():
    code = (
        "import time; from treepiece.serving.server import run_server; from treepiece.serving.settings import Settings;"
        "load = lambda: print('loading', flush=True) or time.sleep(600);"
        "run_server(load, Settings(), host='127.0.0.1', port=0, on_start=print)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"loading\n"
        process.terminate()
        assert b"KeyboardInterrupt" in process.communicate(timeout=LONGEST)[1]  # it has a handler, and does not wait


def test_sigterm_right_before_it_serves(tiny_bundle):
    code = (
        "import os, signal, sys, uvicorn; from treepiece import Parser;"
        "from treepiece.serving.server import run_server; from treepiece.serving.settings import Settings;"
        "run = uvicorn.Server.run;"
        "uvicorn.Server.run = lambda *a, **k: os.kill(os.getpid(), signal.SIGTERM) or run(*a, **k);"
        "load = lambda: Parser.load(sys.argv[1], threads=1);"
        "run_server(load, Settings(), host='127.0.0.1', port=0, on_start=lambda _: None)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(tiny_bundle)], capture_output=True, text=True, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stderr.splitlines()[-1])["event"] == "stopped"


def test_a_server_that_ends_by_itself_is_not_waited_for(tiny_bundle):
    code = (
        "import sys, uvicorn; from treepiece import Parser;"
        "from treepiece.serving.server import run_server; from treepiece.serving.settings import Settings;"
        "uvicorn.Server.main_loop = lambda self: sys.exit(1);"
        "load = lambda: Parser.load(sys.argv[1], threads=1);"
        "run_server(load, Settings(), host='127.0.0.1', port=0, on_start=lambda _: None)"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(tiny_bundle)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 1
    assert "the server ended by itself" in result.stderr


def test_a_second_server_on_the_same_port(tiny_bundle):
    with Process("--model", str(tiny_bundle), "--threads", "1") as server:
        second = run("--model", str(tiny_bundle), "--port", str(server.port))
        with connect(server.port) as connection:  # the first goes on
            connection.sendall(request_bytes(b'{"text": "call mom"}'))
            assert read_answer(connection)[0] == 200
        assert server.stop() == 0
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == (
        f"error: --host 127.0.0.1 --port {server.port}: cannot be listened on: another program listens there already: "
        "stop it, or choose another port (0 is any that is free)\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--model", "nowhere"],
            "error: nowhere: no such folder: give one that `treepiece train` or `treepiece export` wrote",
        ),
        (["--host", "no.such.host.invalid"], "error: --host no.such.host.invalid: there is no such address"),
        (["--queue", "0"], "error: queue must be a whole number, 1 or more, got 0"),
        (
            ["--token-file", "nowhere"],
            "error: --token-file nowhere: No such file or directory: make one with `python -c",
        ),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(options, message):
    result = run("--port", "0", *options)
    assert result.returncode == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


def test_without_the_extra(tmp_path):
    code = "import sys; sys.modules['fastapi'] = None; from treepiece.cli.main import run; run()"
    result = subprocess.run([sys.executable, "-c", code, "serve"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == (
        f"error: this `treepiece serve` needs fastapi, which is not installed: {install_command('serve')}\n"
    )
    result = subprocess.run([sys.executable, "-c", code, "serve", "--help"], capture_output=True, text=True, check=True)
    assert "/v1/parse" in result.stdout


def test_the_token_is_read_from_a_file_or_the_environment(tiny_bundle, tmp_path, monkeypatch):
    monkeypatch.setenv("TREEPIECE_TOKEN", "two words")
    result = run("--model", str(tiny_bundle), "--port", "0")
    assert (result.returncode, result.stderr[:26]) == (2, "error: the token must be o")
    (tmp_path / "token").write_text("secret\n")
    with Process("--model", str(tiny_bundle), "--threads", "1", "--token-file", str(tmp_path / "token")) as server:
        for header, status in (("", 401), ("Authorization: Bearer secret\r\n", 200)):
            with connect(server.port) as connection:
                connection.sendall(request_bytes(b'{"text": "call mom"}', headers=header))
                assert read_answer(connection)[0] == status
        assert server.stop() == 0
    assert "secret" not in json.dumps(server.log)
