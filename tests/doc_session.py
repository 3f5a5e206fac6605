"""Runs the blocks of a page one after the other, as a reader would, in a folder of their own.

`treepiece` and `python` are those of the tests; where no shell is needed they run in the process of the tests, which
has loaded PyTorch already. `pip` installs nothing, but the extras that it is asked for must be
there; `make` says what it would do. A server that a block starts goes on until the page ends, on a port that is free.
"""

import doctest
import io
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from serving_tools import reserve_port

from treepiece.cli.main import run as run_treepiece

ROOT = Path(__file__).parents[1]
_LONGEST = 600
_PORT = "8000"
_SHELL = re.compile(r"[|<>&;$`*]")
_PIP = """
import re, sys, tomllib
extras = tomllib.load(open({project!r}, "rb"))["project"]["optional-dependencies"]
asked = [name for part in re.findall(r"\\[(.*?)\\]", " ".join(sys.argv)) for name in part.split(",")]
sys.exit(next((f"there is no extra {{name}}" for name in asked if name not in extras), 0))
"""


class Session:
    """A reader at a terminal."""

    def __init__(self, folder, **names):
        self.folder = folder / "page"
        self.folder.mkdir()
        self._names = {}
        self._replaced = {f"${name}": str(value) for name, value in names.items()}
        self._server = None
        self._reserved, port = reserve_port()
        self._port = str(port)
        programs = folder / "bin"
        programs.mkdir()
        (folder / "pip.py").write_text(_PIP.format(project=str(ROOT / "pyproject.toml")))
        for name, command in {
            "treepiece": f"{sys.executable} -m treepiece",
            "python": sys.executable,
            "pip": f"{sys.executable} {folder / 'pip.py'}",
            "make": f"{shutil.which('make')} --dry-run -C {ROOT}",
        }.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (programs / name).chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "OMP_NUM_THREADS": "1",
        }

    def run(self, block):
        """Run a block; raise where it fails, or prints something else than it shows."""
        for command in block.first:
            self._call(command, block.place)
        if block.title:
            (self.folder / block.title).write_text(block.code, encoding="utf-8")
        elif block.language == "pycon":
            self._run_doctest(block)
        elif block.language == "python":
            (self.folder / "block.py").write_text(self._adapted(block.code), encoding="utf-8")
            self._inside(lambda: runpy.run_path("block.py", run_name="__main__"), block.place)
        else:
            self._run_commands(block)

    def _run_doctest(self, block):
        test = doctest.DocTestParser().get_doctest(block.code, self._names, block.page, block.page, block.line)
        test.globs = self._names  # which the parser has copied: blocks of a page go on from one another
        said = []
        failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=False)
        assert not failed, "".join(said)

    def _run_commands(self, block):
        for command, output in commands(block):
            if command.startswith("treepiece serve"):
                self._serve(command, block.place)
                continue
            printed = _stripped(self._call(command, block.place))
            if output and "any output" not in block.reasons:
                wanted = _stripped(output)
                is_same = doctest.OutputChecker().check_output(wanted, printed, doctest.ELLIPSIS)
                assert is_same, f"{block.place}: {command}\nprints\n{printed}\nbut the page shows\n{wanted}"

    def _adapted(self, text):
        for name, value in {**self._replaced, _PORT: self._port}.items():
            text = text.replace(name, value)
        return text

    def _call(self, command, place):
        """Return what a command prints."""
        command = self._adapted(command)
        words = [] if _SHELL.search(command.partition("#")[0]) else shlex.split(command, comments=True)
        if words[:1] == ["treepiece"]:
            sys.argv = words
            return self._inside(run_treepiece, f"{place}: {command}")
        result = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=_LONGEST,
            check=False,
        )
        assert result.returncode == 0, f"{place}: {command}\n{result.stdout}{result.stderr}"
        return result.stdout

    def _inside(self, function, place):
        """Return what a function prints in this process; the test has made the page's folder the current one."""
        printed, said = io.StringIO(), io.StringIO()
        code = 0
        with warnings.catch_warnings(), redirect_stdout(printed), redirect_stderr(said):
            warnings.simplefilter("ignore")  # a reader would see them, and go on
            try:
                function()
            except SystemExit as end:
                code = end.code or 0
        assert code == 0, f"{place}\n{printed.getvalue()}{said.getvalue()}"
        return printed.getvalue()

    def _serve(self, command, place):
        self.stop_serving()
        command = self._adapted(command.partition(" #")[0])
        port = "" if "--port" in command else f" --port {self._port}"
        self._server = subprocess.Popen(
            ["bash", "-c", f"exec {command}{port} 2> server.log"], cwd=self.folder, env=self._environment
        )
        deadline = time.monotonic() + _LONGEST
        while time.monotonic() < deadline and self._server.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(f"{place}: {command}: it does not serve: {(self.folder / 'server.log').read_text()}")

    def stop_serving(self):
        """Stop the server, if there is one: it must end as it should."""
        if self._server is not None:
            self._server.send_signal(signal.SIGTERM)
            code, self._server = self._server.wait(_LONGEST), None
            assert code == 0, (self.folder / "server.log").read_text()

    def close(self):
        """End the page."""
        self._reserved.close()
        self.stop_serving()


def commands(block):
    """Yield each command of a block, and the output that is shown below it: none in `sh`, where every line is one.

    A line that ends with a backslash goes on in the next.
    """
    joined = re.sub(r"\\\n\s*", "", block.code)
    if block.language == "sh":
        yield from ((line, "") for line in joined.splitlines() if line.strip() and not line.startswith("#"))
        return
    before, *parts = re.split(r"^\$ ", joined, flags=re.MULTILINE)
    assert not before.strip(), f"{block.place}: a console block begins with `$ `"
    for part in parts:
        command, _, output = part.partition("\n")
        yield command, output


def _stripped(text):
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"
