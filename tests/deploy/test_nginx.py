"""The nginx configuration: Debian's nginx takes it, and keeps from the server what it is there to keep away."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from serving_tools import LONGEST, Process, connect, metrics, read_answer, request_bytes, reserve_port, wait_until

pytestmark = pytest.mark.slow

CONF = Path(__file__).parents[2] / "deploy" / "nginx.conf"
HOST = "parse.example.org"
MAIN = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
{user}
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/treepiece.conf;
}}
"""
QUICK = {"client_header_timeout 10s": "client_header_timeout 1s", "client_body_timeout 10s": "client_body_timeout 1s"}
STRICT = {"rate=50r/s": "rate=1r/m", "burst=100": "burst=3"}


@pytest.fixture(scope="module")
def upstream(tiny_bundle):
    """The port of a server that knows the name under which it is called."""
    pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'treepiece[serve]'")
    options = ("--threads", "1", "--drain-seconds", "0", "--allowed-host", HOST)
    with Process("--model", str(tiny_bundle), *options) as server:
        yield server.port


class Proxy:
    """nginx in a process of its own, with the configuration changed as told."""

    def __init__(self, folder, upstream, changes):
        program = shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
        if program is None or shutil.which("openssl") is None:
            pytest.skip("nginx or openssl is not installed: apt-get install nginx openssl")
        certificate = ("-out", folder / "cert.pem", "-keyout", folder / "key.pem")
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={HOST}", *certificate]
        subprocess.run(make, check=True, capture_output=True)
        reserved, self.port = reserve_port()
        text = CONF.read_text(encoding="utf-8")
        for old, new in {
            "listen 443 ssl": f"listen 127.0.0.1:{self.port} ssl",
            "127.0.0.1:8000": f"127.0.0.1:{upstream}",
            "/etc/ssl/certs/parse.example.org.pem": str(folder / "cert.pem"),
            "/etc/ssl/private/parse.example.org.key": str(folder / "key.pem"),
            **changes,
        }.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / "treepiece.conf").write_text(text, encoding="utf-8")
        user = "user root;" if os.getuid() == 0 else ""  # the folder is not everybody's
        (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user), encoding="utf-8")
        command = [program, "-p", folder, "-c", folder / "nginx.conf"]
        reserved.close()
        self.check = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
        assert self.check.returncode == 0, self.check.stderr
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_until(self._is_there, "nginx does not listen")

    def _is_there(self):
        try:
            connect(self.port).close()
        except ConnectionRefusedError:
            return False
        return True

    def connect(self):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=LONGEST))

    def ask(self, sent):
        """The answer to the bytes of one request."""
        with self.connect() as connection:
            connection.sendall(sent)
            return read_answer(connection)

    def stop(self):
        self.process.terminate()
        self.process.wait(LONGEST)


@pytest.fixture
def proxy(tmp_path, upstream):
    """Start nginx, with changes to its configuration."""
    started = []

    def start(**changes):
        started.append(Proxy(tmp_path, upstream, changes))
        return started[-1]

    yield start
    for one in started:
        one.stop()


def get(path, host=HOST):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def post(body):
    return request_bytes(body).replace(b"Host: localhost", f"Host: {HOST}".encode())


def test_requests_pass(proxy):
    nginx = proxy()
    assert "warn" not in nginx.check.stderr
    status, headers, body = nginx.ask(post(b'{"text": "call mom"}'))
    assert (status, json.loads(body)["text"]) == (200, "call mom")
    assert re.fullmatch("[0-9a-f]{32}", headers["x-request-id"])
    assert {nginx.ask(get(path))[0] for path in ("/", "/page/main.js", "/docs", "/openapi.json", "/v1/model")} == {200}
    assert {nginx.ask(get(path))[0] for path in ("/metrics", "/livez", "/readyz", "/nothing")} == {404}
    status, _, body = nginx.ask(get("/v1/model", host="evil.example"))
    assert (status, body) == (400, b"Invalid host header")


def test_what_is_too_large_or_too_slow_never_reaches_the_server(proxy, upstream):
    nginx = proxy(**QUICK)
    before = count_requests(upstream)
    assert nginx.ask(post(b"a" * (1 << 20))[: 1 << 16])[0] == 413
    request = post(b'{"text": "call mom"}')
    for sent in (b"", request[:40], request[:-5]):
        with nginx.connect() as connection:
            connection.sendall(sent)
            answer = read_answer(connection)
            assert answer is None or answer[0] == 408
    assert count_requests(upstream) == before + 1  # that of the count


def count_requests(port):
    """How many requests a server has counted, without this one."""
    return sum(float(line.split()[-1]) for line in metrics(port) if line.startswith("treepiece_requests_total{"))


def test_a_client_that_asks_too_often_is_refused(proxy):
    nginx = proxy(**STRICT)
    assert [nginx.ask(get("/v1/model"))[0] for _ in range(6)] == [200] * 4 + [429] * 2
