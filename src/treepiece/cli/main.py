"""The `treepiece` command."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated

import typer

from treepiece.cli.console import note
from treepiece.errors import TreepieceError

_COMMANDS = {
    "parse": "treepiece.cli.parsing",
    "train": "treepiece.cli.training",
    "mix": "treepiece.cli.mixing",
    "evaluate": "treepiece.cli.evaluation",
    "export": "treepiece.cli.exporting",
    "serve": "treepiece.cli.serving",
}
"""Where the function of each command is, which has its name."""
_GROUPS = {"tokenizer": "treepiece.cli.tokenizer", "data": "treepiece.cli.data"}
"""Where the `app` of each group of commands is."""


def make_app(wanted: str | None = None) -> typer.Typer:
    """Return the command line; with the name of a command, that one alone, so that no other has to be loaded."""
    app = typer.Typer(
        help="Semantic parsing with tree tokenization.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.callback()(main)
    is_known = wanted in _COMMANDS or wanted in _GROUPS
    for name, module in _GROUPS.items():
        if not is_known or name == wanted:
            app.add_typer(import_module(module).app, name=name)
    for name, module in _COMMANDS.items():
        if not is_known or name == wanted:
            app.command()(getattr(import_module(module), name))
    return app


def __getattr__(name: str) -> object:
    """Return `app`, the whole command line, which loads all commands and is made when it is asked for."""
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
    """Semantic parsing with tree tokenization."""


def run() -> None:
    """Run the command line: a fault in the input is one line on standard error and exit code 2."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # closed by the caller's shell: there is nobody to answer
    try:
        try:
            make_app(sys.argv[1] if len(sys.argv) > 1 else None)()
        finally:
            sys.stdout.flush()  # here, where a full disk or a reader that has gone can still be told
    except TreepieceError as error:
        note(f"error: {error}")
        sys.exit(2)
    except BrokenPipeError:
        # The reader has gone (`treepiece ... | head`): leave quietly, and keep Python from failing on its last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        # Commands name the files that they fail on; what has no name is standard output.
        note(f"error: {error.filename or 'standard output cannot be written'}: {error.strerror}")
        sys.exit(2)
