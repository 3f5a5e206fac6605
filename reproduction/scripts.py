"""The scripts in `benchmarks`: run as anyone would run them, so that a figure is the same here and there."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from reproduction.store import Json
from treepiece.errors import DataError

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def run_script(name: str, *arguments: str, topv2: Path) -> Json:
    """Return the JSON object that a script prints; what it says on standard error is shown as it comes.

    It has a session of its own: Ctrl-C is ours to hear, and ends the script with us.
    """
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *arguments, "--json"]
    environment = {**os.environ, "TREEPIECE_TOPV2": str(topv2.resolve())}
    with subprocess.Popen(  # noqa: S603  # our own script
        command, stdout=subprocess.PIPE, env=environment, text=True, encoding="utf-8", start_new_session=True
    ) as process:
        try:
            printed, _ = process.communicate()
        except BaseException:
            process.terminate()
            raise
    shown = f"benchmarks/{name}.py {' '.join(arguments)}".rstrip()
    if process.returncode:
        raise DataError(f"`python {shown}` ended with exit code {process.returncode}: its message is above")
    try:
        value: Json = json.loads(printed)
    except ValueError:
        raise DataError(f"`python {shown}` printed no JSON, but {printed!r:.60}") from None
    return value


def load_script(name: str) -> ModuleType:
    """Return a script as a module, for what it can do beside its command; it finds its neighbours."""
    if str(BENCHMARKS) not in sys.path:
        sys.path.append(str(BENCHMARKS))
    return importlib.import_module(name)
