"""The `treepiece` command."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from treepiece.cli import data, tokenizer
from treepiece.cli.console import note
from treepiece.cli.evaluation import evaluate
from treepiece.cli.exporting import export
from treepiece.cli.parsing import parse
from treepiece.cli.training import train
from treepiece.errors import TreepieceError

app = typer.Typer(
    help="Semantic parsing with tree tokenization.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(tokenizer.app, name="tokenizer")
app.add_typer(data.app, name="data")
app.command()(train)
app.command()(evaluate)
app.command()(export)
app.command()(parse)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"treepiece {version('treepiece')}")
        raise typer.Exit


@app.callback()
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
            app()
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
