"""`treepiece data`: get or make data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from treepiece.cli.console import note, progress
from treepiece.data.download import TOPV2_URL, download_topv2
from treepiece.data.toy import toy_rows
from treepiece.errors import DataError

app = typer.Typer(help="Get or make data.", no_args_is_help=True)


@app.command()
def topv2(
    output: Annotated[Path, typer.Option(help="The folder to put the files in.")],
    url: Annotated[str, typer.Option(help="Where the archive is; a mirror must have the same checksum.")] = TOPV2_URL,
) -> None:
    """Download TOPv2 (CC BY-SA 4.0), check it and unpack it. Run again to go on after an interruption.

    Example: `treepiece data topv2 --output topv2`
    """
    with progress() as bars:
        task = bars.add_task("downloading", total=None, unit="bytes")
        files = download_topv2(
            output, url=url, on_bytes=lambda done, total: bars.update(task, completed=done, total=total)
        )
    note(f"{output}: {len(files)} files")


@app.command()
def toy(
    rows: Annotated[int, typer.Option(min=0, help="How many rows.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same rows.")] = 0,
    output: Annotated[str, typer.Option(help="The TSV file to write, or - for standard output.")] = "-",
) -> None:
    """Make rows of `utterance <tab> parse` from the built-in toy grammar.

    Example: `treepiece data toy --rows 5000 --output toy.tsv`
    """
    lines = (f"{utterance}\t{parse}\n" for _, utterance, parse in toy_rows(rows, seed))
    if output == "-":
        sys.stdout.writelines(lines)
        return
    try:
        draft = Path(f"{output}.part")  # so that a file that was not finished does not look like one that was
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        draft.replace(output)
    except OSError as error:
        raise DataError(f"{output}: cannot be written: {error.strerror}") from None
    note(f"{output}: {rows:,} rows")
