"""`treepiece parse`: parse a text, the lines of a pipe, or the rows of a file."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from treepiece.bundle import BUNDLED
from treepiece.cli.arguments import Int8, Json, Model, Spelling, Threads, load_parser
from treepiece.cli.console import ProgressBars, note, say, say_json, wants_colour
from treepiece.errors import DataError, OptionError, TextError, TreepieceError
from treepiece.extras import needs_extra
from treepiece.jobs.job import Engine, Job
from treepiece.jobs.sources import StreamText, stream_file, stream_pipe
from treepiece.trees.drawing import outline

if TYPE_CHECKING:
    from treepiece.runtime.parser import Parser
    from treepiece.runtime.result import Result

_READ_BYTES = 1 << 16
_MIN_BATCH = 64


def parse(
    context: typer.Context,
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="The text to parse, in quotes; - reads a pipe, one text per line."),
    ] = None,
    model: Model = BUNDLED,
    source: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Rows to parse: .txt, .jsonl, .tsv or .parquet.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write rows with predictions: .jsonl, .tsv or .parquet.")
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The column with the text.  [default: utterance, or text]"),
    ] = None,
    nbest: Annotated[int, typer.Option(metavar="K", help="The number of candidates to return per text.")] = 1,
    min_confidence: Annotated[
        float,
        typer.Option(
            metavar="P", help="The minimum confidence: a text whose best candidate has less is not understood."
        ),
    ] = 0.0,
    as_json: Json = False,
    top: Annotated[
        bool,
        typer.Option(
            "--top", help="Print TOP text, one line per text; the line is empty if the text is not understood."
        ),
    ] = False,
    spelling: Spelling = True,
    int8: Int8 = None,
    threads: Threads = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a job that was interrupted.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")] = False,
    engine: Annotated[
        Engine, typer.Option(metavar="local|ray", help="Where a job runs: here, or on a Ray cluster.")
    ] = Engine.LOCAL,
) -> None:
    """Parse texts and print their trees.

    A text is an argument, a line of a pipe, or a row of a file. Quote a text that is an argument, or the shell splits
    it into several. A text that cannot be parsed is reported in its place, and the exit code is then 1.

    With --output, the rows of a file of any size are written to another file. They keep their order and their columns,
    and get the columns `tree`, `confidence`, `understood` and `error`. A row that cannot be parsed gets an `error` and
    does not stop the job. NaN and infinite numbers, which JSON cannot hold, become null. --json prints a summary.

    A job that was interrupted, even by kill -9, continues with --resume and writes the same output. RAY_ADDRESS names
    the cluster of --engine ray.

    Examples:

    - `treepiece parse "set an alarm for 8 am"`
    - `treepiece parse --model bundle --nbest 3 "set an alarm for 8 am"`
    - `tail -f utterances.log | treepiece parse --json`
    - `treepiece parse --input rows.jsonl --output parsed.parquet`
    """
    _check_one_text(text, context.args)
    _check_options(text, source, output, column, as_json=as_json, top=top)
    if output is None and (resume or overwrite or engine != Engine.LOCAL):
        raise OptionError("--resume, --overwrite and --engine are for jobs: name the file to write with --output")
    _check_extras(source, output, engine)
    if output is not None:
        assert source is not None  # or _check_options had raised
        job = Job(source, output, column, nbest, min_confidence)
        parser = load_parser(model, int8, threads, spelling=spelling)
        _run_job(job, parser, engine, threads, resume=resume, overwrite=overwrite, as_json=as_json)
        return
    printer = _Printer("json" if as_json else "top" if top else "drawing", is_single=text not in (None, "-"))
    batches = _batches(text, source, column)
    parser = load_parser(model, int8, threads, spelling=spelling)
    _print_all(parser, batches, printer, nbest, min_confidence)


def _check_one_text(text: str | None, more: list[str]) -> None:
    """Raise if there is more than one argument: usually these are the words of one text without quotes."""
    if more:
        quoted = shlex.quote(" ".join([text or "", *more]))
        raise OptionError(
            f"expected one text, got {1 + len(more)} arguments: quote the text, as in `treepiece parse {quoted}`; for "
            "several texts, use a pipe with one text per line, or --input"
        )


def _check_options(
    text: str | None, source: Path | None, output: Path | None, column: str | None, *, as_json: bool, top: bool
) -> None:
    if as_json and top:
        raise OptionError("--json and --top exclude each other: give one")
    if text is not None and source is not None:
        raise OptionError("a text and --input exclude each other: give one")
    if (source is None or str(source) == "-") and (column is not None or output is not None):
        raise OptionError("--column and --output are for files: name the file to read with --input")
    if output is not None and top:
        raise OptionError("--top is for standard output: the name of --output gives its format")


def _check_extras(source: Path | None, output: Path | None, engine: Engine) -> None:
    if any(path is not None and path.suffix.lower() == ".parquet" for path in (source, output)):
        with needs_extra("parse", "parquet"):
            import treepiece.jobs.parquet  # it imports pyarrow
    if engine == Engine.RAY:
        with needs_extra("parse", "ray"):
            import treepiece.jobs.ray_engine  # noqa: F401  # it imports Ray


def _batches(text: str | None, source: Path | None, column: str | None) -> Iterator[list[StreamText]]:
    """Return the texts in batches, each of the texts that are available at the time."""
    if source is not None and str(source) != "-":
        return stream_file(source, column)
    if text not in (None, "-"):
        return iter([[StreamText("text", text)]])
    if sys.stdin is None:
        raise DataError("standard input is closed: give a text, or a file with --input")
    if text is None and source is None and sys.stdin.isatty():
        raise OptionError('there is nothing to parse: give a text, as in `treepiece parse "wake me at 8"`, or a pipe')
    stream = cast(BufferedReader, sys.stdin.buffer)
    return stream_pipe(lambda: stream.read1(_READ_BYTES))  # does not wait for a full block


def _print_all(
    parser: Parser, batches: Iterator[list[StreamText]], printer: _Printer, nbest: int, min_confidence: float
) -> None:
    """Print the results of each batch at once."""
    done = errors = 0
    size = max(_MIN_BATCH, 16 * parser.threads)
    # On a terminal the results show the progress.
    with ProgressBars(is_shown=not printer.is_single and not sys.stdout.isatty()) as bars:
        for batch in batches:
            for start in range(0, len(batch), size):
                some = batch[start : start + size]
                for text, result in zip(some, _parse(parser, some, nbest, min_confidence), strict=True):
                    errors += not printer.print(text, result)
                sys.stdout.flush()
                done += len(some)
                bars.update("parsing", done, detail=f"{done:,} texts")
    if errors:
        if done > 1 or printer.form == "json":
            note(f"{errors:,} of {done:,} text{'s' * (done != 1)} could not be parsed")
        raise typer.Exit(1)


def _parse(parser: Parser, texts: list[StreamText], nbest: int, min_confidence: float) -> list[Result | TreepieceError]:
    from treepiece.jobs.worker import try_texts

    first, *others = (text.text for text in texts)
    if isinstance(first, str) and not others:
        try:  # a single text uses all threads
            return [parser(first, nbest=nbest, min_confidence=min_confidence)]
        except TextError as error:
            return [error]
    return try_texts(parser, [first, *others], nbest=nbest, min_confidence=min_confidence)


@dataclass(frozen=True)
class _Printer:
    """Prints results as drawings, JSON or TOP text; a drawing does not repeat the text if there is only one."""

    form: str
    is_single: bool

    def print(self, text: StreamText, result: Result | TreepieceError) -> bool:
        """Print a result or an error, and return whether it is a result."""
        if self.form == "top" and not isinstance(result, TreepieceError):
            from treepiece.jobs.worker import check_tree

            result = check_tree(result) or result
        if isinstance(result, TreepieceError):
            self._print_error(text, result)
            return False
        if self.form == "json":
            say_json(result.to_dict())
        elif self.form == "top":
            say(result.tree or "")
        else:
            self._draw(result)
        return True

    def _print_error(self, text: StreamText, error: TreepieceError) -> None:
        if self.form == "json":
            say_json({"text": text.text if isinstance(text.text, str) else text.shown, "error": str(error)})
            return
        if self.form == "top":
            say("")  # so that the lines match those of the input
        note(f"error: {error}" if self.is_single else f"error: {text.where}: {error}")

    def _draw(self, result: Result) -> None:
        """Draw the candidates for a text, below the text if there are several texts."""
        colour = wants_colour()
        if not self.is_single:
            say("".join(char if char.isprintable() else "\ufffd" for char in result.text))
        for one in result.corrections:
            say(f"{one.text} is read as {one.read}")
        if len(result.candidates) == 1 or not result.understood:
            say(f"{result.draw(colour=colour)}\nconfidence {result.confidence:.3f}")
        else:
            for number, candidate in enumerate(result.candidates, start=1):
                say(outline(candidate.frame.tree, colour=colour))
                say(f"candidate {number} of {len(result.candidates)}, confidence {candidate.confidence:.3f}")
        if not self.is_single:
            say("")


def _run_job(
    job: Job, parser: Parser, engine: Engine, threads: int | None, *, resume: bool, overwrite: bool, as_json: bool
) -> None:
    """Run a job with a progress bar, and report its outcome."""
    from treepiece.jobs.runner import run_job

    with ProgressBars("rows") as bars:
        try:
            summary = run_job(
                job, parser, resume=resume, overwrite=overwrite, engine=engine, workers=threads, progress=bars
            )
        except KeyboardInterrupt:
            note(f"stopped; finished rows are kept. Run the same command with --resume to continue ({job.output})")
            raise typer.Exit(130) from None
    if summary is None:
        return
    if as_json:
        say_json({"output": str(job.output), **asdict(summary)})
        return
    for example in summary.examples:
        note(f"error: {example}")
    if summary.errors > len(summary.examples):
        note(f"error: {summary.errors - len(summary.examples):,} more rows")
    rows = f"{summary.rows:,} row{'s' * (summary.rows != 1)}"
    note(f"{job.output}: {rows}, {summary.not_understood:,} not understood, {summary.errors:,} with an error")
