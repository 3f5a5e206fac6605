"""`treepiece data`: download, generate or import data."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from treepiece.cli.arguments import Json, note_bad_rows
from treepiece.cli.console import ProgressBars, note, say_json
from treepiece.data.download import TOPV2_URL, download_topv2
from treepiece.data.importers.importing import ImportFormat, import_lines
from treepiece.data.rows import ReadReport
from treepiece.data.toy import toy_rows
from treepiece.errors import DataError

app = typer.Typer(help="Download, generate or import data.", no_args_is_help=True)

_SHOWN = 10


@app.command()
def topv2(
    output: Annotated[Path, typer.Option(metavar="DIR", help="The folder to put the files in.")],
    url: Annotated[
        str, typer.Option(metavar="URL", help="The URL of the archive; a mirror must have the same checksum.")
    ] = TOPV2_URL,
    as_json: Json = False,
) -> None:
    """Download TOPv2 (CC BY-SA 4.0).

    The archive is unpacked only if its checksum is right. After an interruption, the same command continues.

    Example: `treepiece data topv2 --output topv2`
    """
    with ProgressBars("bytes") as bars:
        files = download_topv2(output, url=url, on_bytes=lambda done, total: bars.update("downloading", done, total))
    if as_json:
        say_json({"output": str(output), "files": len(files)})
    else:
        note(f"{output}: {len(files)} files")


@app.command()
def toy(
    rows: Annotated[int, typer.Option(metavar="N", min=0, help="The number of rows.")] = 5000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed gives the same rows.")] = 0,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=f"The file to write; - is standard output.  [default: standard output; a terminal gets {_SHOWN}]",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSONL, with the domain, instead of TSV.")] = False,
) -> None:
    """Generate rows from a toy grammar.

    A row is an utterance and its parse, separated by a tab.

    Examples:

    - `treepiece data toy --rows 5000 --output toy.tsv`
    - `treepiece data toy | treepiece tokenizer train - --output tokenizer`
    """
    if output in (None, "-"):
        is_cut = output is None and sys.stdout.isatty() and rows > _SHOWN
        sys.stdout.writelines(_lines(_SHOWN if is_cut else rows, seed, as_json=as_json))
        if is_cut:
            note(f"the first {_SHOWN} of {rows:,} rows: to get all, use --output toy.tsv or a pipe")
        return
    assert output is not None
    _write(output, _lines(rows, seed, as_json=as_json))
    note(f"{output}: {rows:,} rows")


def _lines(rows: int, seed: int, *, as_json: bool) -> Iterator[str]:
    for domain, utterance, parse in toy_rows(rows, seed):
        value = {"domain": domain, "utterance": utterance, "parse": parse}
        yield f"{json.dumps(value)}\n" if as_json else f"{utterance}\t{parse}\n"


@app.command("import")
def import_file(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A file; a folder of Rasa's YAML files; a folder with seq.in, seq.out and label; or - for standard "
            "input.",
        ),
    ],
    source_format: Annotated[
        ImportFormat | None, typer.Option("--format", help="The format of FILE.  [default: guessed from FILE]")
    ] = None,
    output: Annotated[str, typer.Option(metavar="FILE", help="The TSV file to write; - is standard output.")] = "-",
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be converted.")] = False,
) -> None:
    """Convert training data of other tools to TSV, which `treepiece train` reads.

    - `rasa`: NLU training data in YAML (needs the extra `train`). A role or group becomes part of the label:
      `SL:CITY/DEPARTURE#1`. Synonyms, values, lookup tables and regular expressions are counted and left out.
    - `bio`: a tag per token, such as Snips and ATIS. Either the files seq.in, seq.out and label, or one file with a
      token and its tag per line; the intent is a line of its own or a third column.
    - `mtop`: the eight columns of MTOP.

    Labels are written in upper case, with `_` for whitespace and brackets. A row that cannot be converted is reported
    and left out.

    Examples:

    - `treepiece data import nlu.yml --output my.tsv`
    - `treepiece data import snips/train --format bio --output my.tsv`
    """
    report = ReadReport(strict=strict)
    lines = _some(import_lines(source, source_format, report), source, report)
    if output == "-":
        sys.stdout.writelines(lines)
    else:
        _write(output, lines)
    note_bad_rows(report)
    for what, count in report.left_out.items():
        note(f"left out: {count:,} {what}")
    if output != "-":
        note(f"{output}: {report.n_rows:,} rows")


def _some(lines: Iterable[str], source: str, report: ReadReport) -> Iterator[str]:
    """Yield lines; raise at the end if there were none."""
    yield from lines
    if not report.n_rows:
        note_bad_rows(report)
        raise DataError(f"{source}: no row in it can be converted")


def _write(output: str, lines: Iterable[str]) -> None:
    draft = Path(f"{output}.part")  # so that an unfinished file does not look like a finished one
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        draft.replace(output)
    except OSError as error:
        raise DataError(f"{output}: cannot be written: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)
