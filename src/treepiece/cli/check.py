"""`treepiece check`: finds what may be wrong with rows, before a model is trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treepiece.bundle import replace_files
from treepiece.cli.arguments import BUNDLED_HELP, Data, Json, Split
from treepiece.cli.console import ProgressBars, note, say, say_json, say_table
from treepiece.errors import DataError, OptionError

if TYPE_CHECKING:
    from treepiece.checking.findings import CheckReport, Finding


def check(
    data: Data,
    eval_data: Annotated[
        str | None,
        typer.Option("--eval", metavar="DATA", help="The rows to evaluate with later: a folder, a file or -."),
    ] = None,
    split: Split = "train",
    eval_split: Annotated[str, typer.Option(metavar="SPLIT", help="Which files of the folder in --eval.")] = "eval",
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Find likely label errors with a model that was trained on other rows (it finds fewer in the rows "
            f"that it was trained on): a folder that `treepiece train` or `treepiece export` wrote, {BUNDLED_HELP}",
        ),
    ] = None,
    min_confidence: Annotated[
        float,
        typer.Option(metavar="P", help="Report rows for which the model has another parse with this confidence."),
    ] = 0.9,
    min_rows: Annotated[int, typer.Option(metavar="N", help="Report labels with fewer training rows.")] = 10,
    examples: Annotated[int, typer.Option(metavar="N", help="The most examples of each kind of finding.")] = 5,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a report with drawings of the trees: one HTML file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find what may be wrong with DATA before training.

    Unreadable rows, one utterance with several parses, words that spans cut, stray punctuation at the edges of spans,
    rare labels and nestings; with --eval also rows and near duplicates that are in both splits, and labels that
    training lacks. Counts are exact. A file may have millions of rows: none of them is kept in memory.

    --model compares each annotation with the parse of a trained model. A model that was trained on the same rows has
    learned their errors too, and finds fewer of them. To check all rows, train two models, each on one half, and
    check the other half with it.

    The exit code is 1 if there are rows that cannot be read, and 0 otherwise, whatever else was found.

    Examples:

    - `treepiece check my.tsv`
    - `treepiece check topv2 --eval topv2 --html report.html`
    - `treepiece check topv2 --split eval --model bundled --examples 50 --json`
    """
    from treepiece.api import check as check_data
    from treepiece.checking.checker import CheckConfig
    from treepiece.checking.html_report import html_report

    if data == eval_data == "-":
        raise OptionError("--eval: DATA is standard input already: give a folder or a file for one of them")
    config = CheckConfig(min_rows=min_rows, min_confidence=min_confidence, examples=examples)
    with ProgressBars("kB") as bars:
        report = check_data(
            data, eval_data, split=split, eval_split=eval_split, model=model, config=config, progress=bars
        )
    title = f"{data} with {eval_data}" if eval_data else data
    if html is not None:
        _write(html, html_report(report, f"Check of {title}"))
    if as_json:
        say_json(report.to_json())
    else:
        _draw(report, title)
    if report.has_errors:
        raise typer.Exit(1)


def _write(file: Path, page: str) -> None:
    try:
        replace_files(file.parent, {file.name: page.encode()})
    except OSError as error:
        raise DataError(f"{file}: cannot be written: {error.strerror}") from None
    note(f"{file}: the report")


def _draw(report: CheckReport, title: str) -> None:
    n_eval = "" if report.eval_rows is None else f", {report.eval_rows:,} rows of eval"
    counts = [(kind.about.severity, f"{count:>9,}", kind.about.counts) for kind, count in report.counts.items()]
    say(f"{title}: {report.rows:,} rows{n_eval}")
    say_table("", counts, head=("severity", "   number", "finding"), is_text=True)
    for kind, findings in report.examples.items():
        if findings:
            about = kind.about
            say(f"{about.counts.capitalize()} ({about.severity}): {about.advice}")
            for finding in findings:
                say("\n".join(map(_plain, _lines(finding))))
            say("")
    for text in report.notes:
        note(text)


def _lines(finding: Finding) -> list[str]:
    where = str(finding.where) if finding.utterance is None else f"{finding.where}: {finding.utterance}"
    parses = (f"{quote.caption}: {quote.tree}" for quote in finding.parses)
    return [f"  {where}", f"    {finding.found}", *(f"    {parse}" for parse in parses)]


def _plain(text: str) -> str:
    """Return a text for a terminal, without control characters, which move the cursor."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
