"""The systemd unit: that systemd takes it, how little it exposes, and that its command runs under its rules."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import serving_tools
from serving_tools import Process, connect, read_answer, request_bytes

from treepiece.serving.settings import Settings

UNIT = Path(__file__).parents[2] / "deploy" / "treepiece.service"
TEXT = UNIT.read_text(encoding="utf-8")
PROGRAM = "/opt/treepiece/bin/treepiece"
MOST_EXPOSURE = 1.5
"""Of 10, by systemd's own count."""
NO_NEW_CODE = (
    "import ctypes\n"
    "PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1\n"
    "is_refused = ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0\n"
)
"""What MemoryDenyWriteExecute does, for a process that asks for it itself."""


def value(name):
    """The only value of a setting."""
    (found,) = re.findall(rf"^{name}=(.*)$", TEXT, flags=re.MULTILINE)
    return found


def analyze(*arguments):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: it comes with systemd")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def unit(tmp_path):
    """A copy whose program exists."""
    copy = tmp_path / UNIT.name
    copy.write_text(TEXT.replace(PROGRAM, sys.executable), encoding="utf-8")
    return copy


def test_systemd_takes_it(unit):
    result = analyze("verify", "--man=no", str(unit))
    assert (result.returncode, result.stderr) == (0, "")


def test_it_exposes_little(unit):
    result = analyze("security", "--offline=true", f"--threshold={10 * MOST_EXPOSURE:g}", "--no-pager", str(unit))
    if "--offline" in result.stderr or "unrecognized option" in result.stderr:
        pytest.skip("this systemd-analyze cannot look at a file: it takes systemd 250 or newer")
    assert result.returncode == 0, result.stdout


def test_systemd_waits_longer_than_the_server():
    usual = Settings()
    assert int(value("TimeoutStopSec").removesuffix("s")) > usual.drain_seconds + usual.stop_seconds


@pytest.mark.slow
def test_its_command_runs_without_new_machine_code(tmp_path, monkeypatch):
    pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'treepiece[serve]'")
    if subprocess.run([sys.executable, "-c", f"{NO_NEW_CODE}raise SystemExit(is_refused)"], check=False).returncode:
        pytest.skip("this system cannot refuse new machine code to a process: it takes Linux 6.3 or newer")
    (tmp_path / "token").write_text("secret\n")
    command = value("ExecStart").replace("${CREDENTIALS_DIRECTORY}", str(tmp_path)).replace("$TREEPIECE_OPTIONS", "")
    program, subcommand, *options = shlex.split(command)
    assert (program, subcommand) == (PROGRAM, "serve")
    for line in re.findall(r"^Environment=(.*)$", TEXT, flags=re.MULTILINE):
        for setting in line.split():
            monkeypatch.setenv(*setting.split("=", 1))
    run = f"{NO_NEW_CODE}from treepiece.cli.main import run; run()"
    monkeypatch.setattr(serving_tools, "PROGRAM", [sys.executable, "-c", run, "serve"])
    with Process(*options, "--threads", "2") as server:
        for header, status in (("", 401), ("Authorization: Bearer secret\r\n", 200)):
            with connect(server.port) as connection:
                connection.sendall(request_bytes(b'{"texts": ["call mom", "wake me at 8 am"]}', headers=header))
                assert read_answer(connection)[0] == status
        assert server.stop() == 0
