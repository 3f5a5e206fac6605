"""Runs a job: makes the parts that are missing, then the output."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from treepiece.errors import DataError
from treepiece.jobs.columns import ANSWER, Kind
from treepiece.jobs.job import Engine, Job, OutputFormat, Summary
from treepiece.jobs.parts import Parts, check_absent, summarise
from treepiece.jobs.plan import check_same, make_plan
from treepiece.jobs.sinks import open_sink
from treepiece.jobs.sources import Piece, Source, open_source
from treepiece.jobs.work import Part, Worker
from treepiece.runtime.parser import Asked, Parser

Make = Callable[[Sequence[Piece]], Generator[Part, None, None]]
"""Yields the parts of pieces, in any order."""


@dataclass(frozen=True)
class Observer:
    """Is told how far a job is: rows done, of how many; and what a person may want to know."""

    rows: Callable[[int, int], None] = lambda done, total: None
    remark: Callable[[str], None] = lambda text: None


def run_job(
    job: Job,
    parser: Parser,
    *,
    resume: bool = False,
    overwrite: bool = False,
    engine: Engine = Engine.LOCAL,
    workers: int | None = None,
    observer: Observer | None = None,
) -> Summary | None:
    """Parse the rows of a file into another file, and return what came of it; None if all was done before.

    A job that was interrupted, at whatever moment, is gone on with by `resume`; its output is the same, byte for byte.
    `workers` limits how many processes of a Ray cluster have a parser; by default, one for each of its cores.
    """
    observer = observer or Observer()
    Asked(job.nbest, job.min_confidence)  # raises if these are out of range
    source = open_source(job.input, job.column)
    parts = Parts(job.output)
    if not parts.folder.exists():
        check_absent(job.output, overwrite=overwrite)
    with parts.locked():
        if parts.is_joined():
            parts.remove()
            if resume:
                observer.remark(f"{job.output}: this job had come to its end")
                return None
        check_absent(job.output, overwrite=overwrite)
        columns = _begin(parts, job, parser, source, resume=resume, observer=observer)
        pieces = list(source.cut(job.part_rows))
        summary = _make_missing(parts, pieces, _engine(job, parser, columns, engine, workers), observer)
        parts.join(pieces, open_sink(job.output_format, source, columns), overwrite=overwrite)
        return summary


def _begin(
    parts: Parts, job: Job, parser: Parser, source: Source, *, resume: bool, observer: Observer
) -> dict[str, Kind]:
    """Begin a job, or check that the one to go on with is the same; return the columns of the input."""
    parts.check_is_ours()
    plan = make_plan(job, parser)
    if parts.is_begun:
        if not resume:
            raise DataError(
                f"{parts.folder}: an unfinished job is there: go on with it with --resume, or remove the folder to "
                "begin again"
            )
        before = parts.read_plan()
        check_same(before, plan, parts.folder)
        return _read_columns(before)
    if resume:
        observer.remark(f"{parts.folder}: there is no job to go on with: a new one begins")
    replaced = [name for name in source.first_columns() if name in ANSWER]
    if replaced:
        observer.remark(f"{job.input}: the answer replaces the columns {', '.join(replaced)}")
    # The columns of a JSONL file are known when it was read to its end; JSONL can be written without.
    columns = source.columns() if job.output_format != OutputFormat.JSONL else {}
    parts.write_plan({**plan, "columns": columns})
    return columns


def _read_columns(plan: Mapping[str, Any]) -> dict[str, Kind]:
    return {name: Kind(kind) for name, kind in plan["columns"].items()}


def _engine(job: Job, parser: Parser, columns: Mapping[str, Kind], engine: Engine, workers: int | None) -> Make:
    """Return what makes parts."""
    if engine == Engine.RAY:
        from treepiece.jobs.cluster import make_parts

        return partial(make_parts, job, parser, columns, workers)
    return lambda pieces: (part for part in map(Worker(job, columns, parser), pieces))


def _make_missing(parts: Parts, pieces: Sequence[Piece], make: Make, observer: Observer) -> Summary:
    """Make the parts that are not there yet."""
    facts = parts.finished(pieces)
    missing = [piece for piece in pieces if piece.first not in facts]
    total = sum(piece.rows for piece in pieces)
    done = total - sum(piece.rows for piece in missing)
    observer.rows(done, total)
    with closing(make(missing)) as made:  # closed at once, so that a failure here ends a cluster too
        for part in made:
            parts.write(part)
            facts[part.facts.first] = part.facts
            done += part.facts.rows
            observer.rows(done, total)
    return summarise([facts[piece.first] for piece in pieces])
