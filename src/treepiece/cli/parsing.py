"""`treepiece parse`: what texts mean, for people, for programs, and for files of many rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, cast

import typer

from treepiece.cli.console import note, progress, say, say_json, stderr, wants_colour
from treepiece.cli.extras import needs_extra
from treepiece.cli.reading import BUNDLED_HELP, Json
from treepiece.errors import DataError, OptionError, TextError, TreepieceError
from treepiece.jobs.job import Engine, Job
from treepiece.jobs.streams import Item, read_file, read_pipe
from treepiece.shipped import BUNDLED
from treepiece.trees.outline import outline

if TYPE_CHECKING:
    from treepiece.runtime.parser import Parser
    from treepiece.runtime.result import Result

_BLOCK = 1 << 16
_LEAST_BATCH = 64


def parse(
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="What to parse; - reads one a line from a pipe.")
    ] = None,
    model: Annotated[
        str, typer.Option(metavar="DIR", help=f"The folder of a model that `treepiece export` wrote, {BUNDLED_HELP}")
    ] = BUNDLED,
    source: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Rows to parse: .txt, .jsonl, .tsv or .parquet.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write rows and answers: .jsonl, .tsv or .parquet.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The column with the text.  [default: utterance, or text]", show_default=False)
    ] = None,
    nbest: Annotated[int, typer.Option(metavar="K", help="How many readings of each text to return.")] = 1,
    min_confidence: Annotated[
        float, typer.Option(metavar="P", help="Where the best reading has less, the text is not understood.")
    ] = 0.0,
    as_json: Json = False,
    top: Annotated[bool, typer.Option("--top", help="Print TOP text, one line a text; empty: not understood.")] = False,
    int8: Annotated[
        bool | None, typer.Option("--int8/--float", help="Which graphs.  [default: the fastest]", show_default=False)
    ] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="How many cores.  [default: all]")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a job that was interrupted.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists.")] = False,
    engine: Annotated[Engine, typer.Option(help="Where a job runs: here, or on a Ray cluster.")] = Engine.LOCAL,
) -> None:
    """Parse texts: draw the tree of each, or print JSON.

    A text that cannot be parsed is reported in its place, and the exit code is 1. With --output a file of any size is
    parsed: its rows keep their order and columns and get `tree`, `confidence`, `understood` and `error`; a row that
    cannot be parsed has an `error` and stops nothing. A job that was interrupted, even by kill -9, goes on with
    --resume and ends with the same output. RAY_ADDRESS names the cluster of --engine ray.

    Examples:

    - `treepiece parse "set an alarm for 8 am"`
    - `treepiece parse --model bundle "set an alarm for 8 am"`
    - `tail -f utterances.log | treepiece parse --model bundle --json`
    - `treepiece parse --model bundle --input rows.jsonl --output parsed.parquet`
    """
    _check_options(texts, source, output, column, as_json=as_json, top=top)
    if output is None and (resume or overwrite or engine != Engine.LOCAL):
        raise OptionError("--resume, --overwrite and --engine are for jobs: name the file to write with --output")
    _check_extras(source, output, engine)
    if output is not None:
        assert source is not None  # or _check_options had raised
        job = Job(source, output, column, nbest, min_confidence)
        _run_job(job, _load(model, int8, threads), engine, threads, resume=resume, overwrite=overwrite)
        return
    how = _How("json" if as_json else "top" if top else "drawing", nbest, min_confidence)
    batches = _batches(texts, source, column)
    _print_all(_load(model, int8, threads), batches, how, is_short=bool(texts) and texts != ["-"])


def _check_options(
    texts: list[str] | None, source: Path | None, output: Path | None, column: str | None, *, as_json: bool, top: bool
) -> None:
    if as_json and top:
        raise OptionError("--json and --top exclude each other: give one")
    if texts and source is not None:
        raise OptionError("texts and --input exclude each other: give one")
    if (source is None or str(source) == "-") and (column is not None or output is not None):
        raise OptionError("--column and --output are for files: name the file to read with --input")
    if output is not None and (as_json or top):
        raise OptionError("--json and --top are for standard output: the format of --output is told from its name")


def _check_extras(source: Path | None, output: Path | None, engine: Engine) -> None:
    if any(path is not None and path.suffix.lower() == ".parquet" for path in (source, output)):
        with needs_extra("parse", "parquet"):
            import treepiece.jobs.tables  # noqa: F401  # it imports pyarrow
    if engine == Engine.RAY:
        with needs_extra("parse", "ray"):
            from treepiece.jobs.cluster import import_ray

            import_ray()


def _load(model: str, int8: bool | None, threads: int | None) -> Parser:
    from treepiece.runtime.parser import Parser

    precision = None if int8 is None else "int8" if int8 else "float"
    return Parser.load(model, precision=precision, threads=threads)


@dataclass(frozen=True)
class _How:
    """How answers are printed, and what is asked for."""

    form: str
    nbest: int
    min_confidence: float


def _batches(texts: list[str] | None, source: Path | None, column: str | None) -> Iterator[list[Item]]:
    """Return the texts, those together that are there at the same time."""
    if source is not None and str(source) != "-":
        return read_file(source, column)
    if texts and texts != ["-"]:
        return iter([[Item(f"text {number}", text) for number, text in enumerate(texts, start=1)]])
    if sys.stdin is None:
        raise DataError("standard input is closed: give a text, or a file with --input")
    if not texts and source is None and sys.stdin.isatty():
        raise OptionError('there is nothing to parse: give a text, as in `treepiece parse "wake me at 8"`, or a pipe')
    stream = cast(BufferedReader, sys.stdin.buffer)
    return read_pipe(lambda: stream.read1(_BLOCK))  # what is there now: it does not wait for a whole block


def _print_all(parser: Parser, batches: Iterator[list[Item]], how: _How, *, is_short: bool) -> None:
    """Print the answers of each batch as soon as they are there."""
    done = bad = 0
    size = max(_LEAST_BATCH, 16 * parser.threads)
    with _counter(is_shown=not is_short) as count:
        for items in batches:
            for start in range(0, len(items), size):
                some = items[start : start + size]
                results = [_as_top(result) if how.form == "top" else result for result in _answer(parser, some, how)]
                for item, result in zip(some, results, strict=True):
                    _print_one(item, result, how, is_alone=is_short and len(items) == 1)
                sys.stdout.flush()
                done += len(some)
                bad += sum(isinstance(result, TreepieceError) for result in results)
                count(done)
    if bad:
        if done > 1 or how.form == "json":
            note(f"{bad:,} of {done:,} text{'s' * (done != 1)} could not be parsed")
        raise typer.Exit(1)


@contextmanager
def _counter(*, is_shown: bool) -> Iterator[Callable[[int], None]]:
    """Give what draws how many texts are done. Where answers go to the screen they show that, and nothing is drawn."""
    if not is_shown or sys.stdout.isatty() or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("parsing, {task.completed:,} texts"), TimeElapsedColumn())
    # Standard output is for the answers: the bar must not take it, as bars do unless they are told.
    with Progress(*columns, console=stderr(), transient=True, redirect_stdout=False) as bars:
        task = bars.add_task("", total=None)
        yield lambda done: bars.update(task, completed=done)


def _answer(parser: Parser, items: list[Item], how: _How) -> list[Result | TreepieceError]:
    from treepiece.jobs.answers import try_texts

    if len(items) == 1 and items[0].text is not None and items[0].error is None:
        try:  # a single text has all threads for itself
            return [parser(items[0].text, nbest=how.nbest, min_confidence=how.min_confidence)]
        except TextError as error:
            return [error]
    texts = [item.error or item.text or "" for item in items]
    return try_texts(parser, texts, nbest=how.nbest, min_confidence=how.min_confidence)


def _as_top(result: Result | TreepieceError) -> Result | TreepieceError:
    from treepiece.jobs.answers import check_tree

    return result if isinstance(result, TreepieceError) else check_tree(result) or result


def _print_one(item: Item, result: Result | TreepieceError, how: _How, *, is_alone: bool) -> None:
    if isinstance(result, TreepieceError):
        if how.form == "json":
            say_json({"text": item.text, "error": str(result)})
            return
        if how.form == "top":
            say("")  # so that the lines stay beside those of the input
        note(f"error: {result}" if is_alone else f"error: {item.where}: {result}")
    elif how.form == "json":
        say_json(result.to_json())
    elif how.form == "top":
        say(result.tree or "")
    else:
        _draw(result, is_alone=is_alone)


def _draw(result: Result, *, is_alone: bool) -> None:
    """Draw the readings of a text; its own words come first where there are several texts."""
    colour = wants_colour()
    if not is_alone:
        say("".join(char if char.isprintable() else "\ufffd" for char in result.text))
    if len(result.candidates) == 1 or not result.understood:
        say(f"{result.draw(colour=colour)}\nconfidence {result.confidence:.3f}")
    else:
        for number, candidate in enumerate(result.candidates, start=1):
            say(f"{outline(candidate.frame.tree, colour=colour)}")
            say(f"reading {number} of {len(result.candidates)}, confidence {candidate.confidence:.3f}")
    if not is_alone:
        say("")


def _run_job(job: Job, parser: Parser, engine: Engine, threads: int | None, *, resume: bool, overwrite: bool) -> None:
    """Run a job with a progress bar, and say what came of it."""
    from treepiece.jobs.run import Observer, run_job

    with progress() as bars:
        task = bars.add_task("parsing", total=None, unit="rows")
        rate = _Rate()
        observer = Observer(
            rows=lambda done, total: bars.update(
                task, completed=done, total=total, unit=f"rows, {rate.after(done):,.0f} rows/s"
            ),
            remark=note,
        )
        try:
            summary = run_job(
                job,
                parser,
                resume=resume,
                overwrite=overwrite,
                engine=engine,
                workers=threads,
                observer=observer,
            )
        except KeyboardInterrupt:
            note(f"stopped; the rows that are done are kept. Go on with the same command and --resume ({job.output})")
            raise typer.Exit(130) from None
    if summary is None:
        return
    for example in summary.examples:
        note(f"error: {example}")
    if summary.bad > len(summary.examples):
        note(f"error: {summary.bad - len(summary.examples):,} more rows")
    counts = f"{summary.rows:,} rows, {summary.not_understood:,} not understood, {summary.bad:,} with an error"
    note(f"{job.output}: {counts}")


class _Rate:
    """Rows a second, not counting those that an earlier process has done."""

    def __init__(self) -> None:
        self._begin: tuple[int, float] | None = None

    def after(self, done: int) -> float:
        """Return the rate when so many rows are done."""
        now = perf_counter()
        rows, begin = self._begin = self._begin or (done, now)
        return (done - rows) / max(1e-9, now - begin)
