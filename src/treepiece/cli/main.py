"""The `treepiece` command."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated

import typer

from treepiece.cli.console import note
from treepiece.errors import TreepieceError

_COMMANDS = ("parse", "check", "train", "average", "evaluate", "export", "serve", "tools")
"""The commands: each is a function in a module of its name."""
_GROUPS = {"tokenizer": "tokenize", "data": "data"}
"""The module of each group of commands, which has an `app`."""


def make_app(wanted: str | None = None) -> typer.Typer:
    """Return the command line; with the name of a command, only that one, so that no other is imported."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.callback()(main)
    names = (*_COMMANDS, *_GROUPS)
    for name in (wanted,) if wanted in names else names:
        module = import_module(f"treepiece.cli.{_GROUPS.get(name, name)}")
        if name in _GROUPS:
            app.add_typer(module.app, name=name)
        else:
            # `parse` itself reports a text without quotes, whose words are too many arguments.
            app.command(context_settings={"allow_extra_args": name == "parse"})(getattr(module, name))
    return app


def __getattr__(name: str) -> object:
    """Return `app`, the complete command line; it imports all commands, so it is built on demand."""
    if name == "app":
        return make_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"treepiece {version('treepiece')}")
        raise typer.Exit


def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Semantic parsing with tree tokenization.

    Results go to standard output, everything else to standard error. A command exits with 0 if it succeeds, and with 2
    and one line on standard error if its input or an option is wrong. `treepiece parse` exits with 1 if some texts
    cannot be parsed, and `treepiece check` if some rows cannot be read; Ctrl-C ends training and jobs with 130, after
    saving.

    Example: `treepiece parse "set an alarm for 8 am"`
    """


def run() -> None:
    """Run the command line: wrong input is one line on standard error and exit code 2."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # closed by the caller's shell
    try:
        try:
            make_app(sys.argv[1] if len(sys.argv) > 1 else None)()
        finally:
            sys.stdout.flush()  # here, where a full disk or a closed pipe can still be reported
    except TreepieceError as error:
        note(f"error: {error}")
        sys.exit(2)
    except BrokenPipeError:
        # The reader closed the pipe (`treepiece ... | head`): exit quietly, and prevent an error in Python's last
        # flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        # Errors about files have a name; an error without one is about standard output.
        note(f"error: {error.filename or 'standard output cannot be written'}: {error.strerror}")
        sys.exit(2)
