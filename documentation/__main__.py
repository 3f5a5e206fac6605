"""Writes the figures and the page on the command line into `docs`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from documentation import commands, fitting, merging, partitions, passes, placeholders, wide

DOCS = Path(__file__).parents[1] / "docs"
MADE: dict[str, Callable[[], str]] = {
    "figures/merges.svg": merging.draw,
    "figures/lattice.svg": partitions.draw,
    "figures/em.svg": fitting.draw,
    "figures/placeholders.svg": placeholders.draw,
    "figures/folding.svg": wide.draw,
    "figures/passes.svg": passes.draw,
    "cli.md": commands.write,
}
"""What is made, and by what."""


def main() -> None:
    """Write all of it."""
    for name, make in MADE.items():
        (DOCS / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
