"""Fresh virtual environments, and the tests run in them against an installed wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

FAST = "not slow and not browser and not ray"
"""Which tests run: those of `make check`."""


class Failed(Exception):
    """A step that did not pass; the message says what to look at."""


class Skipped(Exception):
    """A step that cannot run on this machine; the message says why."""


def run(command: Sequence[str | Path], log: TextIO, cwd: Path | None = None, **variables: str) -> None:
    """Run a command with its output in a log, with more environment variables; raise `Failed` where it fails."""
    words = [str(word) for word in command]
    print("$", *words, file=log, flush=True)
    outside = ("PYTHONPATH", "VIRTUAL_ENV")  # the source must not be found instead of what is installed
    environment = {name: value for name, value in os.environ.items() if name not in outside}
    environment |= variables
    done = subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, cwd=cwd, env=environment, check=False)
    if done.returncode:
        raise Failed(f"`{' '.join(words[:4])} ...` ended with {done.returncode}")


def find_python(version: str) -> Path:
    """Return the program of a Python version, such as `3.12`; raise `Skipped` where there is none.

    A shim of pyenv is on the path for versions that are installed and not selected: PYENV_VERSION selects one.
    """
    program = shutil.which(f"python{version}")
    if program is not None:
        found = subprocess.run(
            [program, "-c", "import sys; print(sys.executable)"],
            env={**os.environ, "PYENV_VERSION": version},
            capture_output=True,
            text=True,
            check=False,
        )
        if found.returncode == 0:
            return Path(found.stdout.strip())
    raise Skipped(f"there is no python{version} on the path that runs")


def make_environment(folder: Path, python: Path, installs: Sequence[Sequence[str]], log: TextIO) -> Path:
    """Make a virtual environment, call `pip install` in it with each of `installs`, and return its Python."""
    shutil.rmtree(folder, ignore_errors=True)
    run([python, "-m", "venv", folder], log)
    inside = folder / "bin" / "python"
    for arguments in installs:
        run([inside, "-m", "pip", "install", "--quiet", *arguments], log)
    return inside


def unpack_without_source(sdist: Path, folder: Path) -> Path:
    """Unpack an sdist, delete its source, and return where its tests are."""
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    shutil.rmtree(root / "src")
    return root


def run_tests(python: Path, root: Path, log: TextIO, **variables: str) -> str:
    """Run the fast tests of a folder, and the examples of the installed package; return pytest's last line.

    What the tests make stays in `temporary_folder`.
    """
    command: list[str | Path] = [
        python,
        "-m",
        "pytest",
        "-n",
        "2",
        "--dist",
        "loadfile",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-m", FAST, "--basetemp", temporary_folder(root), "tests", "--pyargs", "treepiece"]
    run(command, log, cwd=root, **variables)
    log.flush()
    return last_line(Path(log.name))


def temporary_folder(root: Path) -> Path:
    """Return where the tests of a folder put what they make."""
    return root.parent / "temporary"


def last_line(file: Path) -> str:
    """Return the last line of a log, without the rule that pytest draws around it."""
    lines = file.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
    return lines[-1].strip("= ") if lines else ""


def is_own(version: str) -> bool:
    """Return whether this process runs that version of Python: PyTorch is installed for it alone."""
    return version == f"{sys.version_info.major}.{sys.version_info.minor}"
