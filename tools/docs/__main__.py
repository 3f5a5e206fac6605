"""Writes the figures and the command reference into `docs`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.docs import fitting, merging, partitions, passes, units

DOCS = Path(__file__).parents[2] / "docs"
_USAGE = "```console\n$ "
_NOT_RUN = "<!-- docs: not run: a synopsis -->\n"


def write_commands() -> str:
    """Return the command reference, which typer writes from the commands themselves."""
    options = ["--name", "treepiece", "--title", "Command line"]
    command = [sys.executable, "-m", "typer", "--app", "app", "treepiece.cli.main", "utils", "docs", *options]
    page = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout
    return page.strip().replace(_USAGE, _NOT_RUN + _USAGE) + "\n"


MADE: dict[str, Callable[[], str]] = {
    "figures/merges.svg": merging.draw,
    "figures/lattice.svg": partitions.draw,
    "figures/em.svg": fitting.draw,
    "figures/placeholders.svg": units.draw_placeholders,
    "figures/folding.svg": units.draw_folding,
    "figures/passes.svg": passes.draw,
    "cli.md": write_commands,
}
"""The generated files, and the function that returns the content of each."""


def main() -> None:
    """Write all files."""
    for name, make in MADE.items():
        (DOCS / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
