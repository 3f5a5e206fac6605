"""`python -m reproduction`."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from reproduction.options import REPORT, Options, read_options
from reproduction.store import Store
from treepiece.cli.console import note
from treepiece.errors import TreepieceError


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what a command line asks for, and return the exit code.

    0: all that was asked for is done; 1: parts failed or wait for others; 2: it could not begin; 130: interrupted.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with _terminate_as_interrupt():
            return _reproduce(read_options(given))
    except TreepieceError as error:
        note(f"error: {error}")
        return 2
    except ModuleNotFoundError as error:
        note(f"error: {error.name} is not installed: pip install '.[train,bench]', or use `make reproduce`")
        return 2
    except KeyboardInterrupt:
        command = shlex.join(["python", "-m", "reproduction", *given])
        note(f"stopped; what is done is kept. Go on with: {command}")
        return 130


def _reproduce(options: Options) -> int:
    store = Store(options.work)
    left: list[str] = []
    if options.is_plan or options.only != (REPORT,):
        # Not for the report alone: it needs neither the data nor what trains and parses.
        from reproduction.listing import show_parts
        from reproduction.planning import choose_parts, plan_parts
        from reproduction.running import run_parts

        parts = plan_parts(options)
        chosen = choose_parts(parts, options.only)
        show_parts(chosen, parts, store)
        if options.is_plan:
            return 0
        left = run_parts(chosen, parts, store)
    if options.wants(REPORT):
        from reproduction.report.page import write_report

        path = write_report(store, options.docs)
        note(f"{path}: written")
    if left:
        note(f"not done: {', '.join(left)}")
    return 1 if left else 0


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
