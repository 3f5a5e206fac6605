"""Runs a job: makes the missing parts, then the output."""

from __future__ import annotations

from contextlib import closing

from treepiece.errors import DataError
from treepiece.jobs.columns import PREDICTED, ColumnType
from treepiece.jobs.job import Engine, Job, JobSummary, OutputFormat, check_same_plan
from treepiece.jobs.part_files import PartFiles, check_absent, summarize
from treepiece.jobs.sinks import open_sink
from treepiece.jobs.sources import Source, open_source
from treepiece.jobs.worker import Worker
from treepiece.progress import NoProgress, Progress
from treepiece.runtime.parser import Parser


def run_job(
    job: Job,
    parser: Parser,
    *,
    resume: bool = False,
    overwrite: bool = False,
    engine: Engine = Engine.LOCAL,
    workers: int | None = None,
    progress: Progress | None = None,
) -> JobSummary | None:
    """Parse the rows of a file into another file, and return the outcome; None if the job had finished before.

    `resume` continues a job that was interrupted at any time; the output is the same, byte for byte.
    `workers` limits the number of processes with a parser on a Ray cluster; by default, one per core.
    """
    progress = progress or NoProgress()
    parser.request(job.nbest, job.min_confidence)  # raises if these are out of range
    source = open_source(job.input, job.column)
    files = PartFiles(job.output)
    if not files.folder.exists():
        check_absent(job.output, overwrite=overwrite)
    with files.locked():
        if files.is_joined():
            files.remove()
            if resume:
                progress.message(f"{job.output}: this job had already finished")
                return None
        check_absent(job.output, overwrite=overwrite)
        columns = _start(files, job, parser, source, resume=resume, progress=progress)
        chunks = list(source.chunks(job.part_rows))
        parts = files.finished(chunks)
        missing = [chunk for chunk in chunks if chunk.first not in parts]
        total = sum(chunk.rows for chunk in chunks)
        done = sum(part.rows for part in parts.values())
        progress.update("parsing", done, total)
        if engine == Engine.RAY:
            from treepiece.jobs.ray_engine import make_parts

            made = make_parts(job, parser, columns, workers, missing)
        else:
            made = (part for part in map(Worker(job, columns, parser), missing))
        with closing(made):  # at once, so that a failure here ends a cluster too
            for part in made:
                files.write(part)
                parts[part.first] = part.summary
                done += part.summary.rows
                progress.update("parsing", done, total)
        files.join(chunks, open_sink(job.output_format, source, columns), overwrite=overwrite)
        return summarize([parts[chunk.first] for chunk in chunks])


def _start(
    files: PartFiles, job: Job, parser: Parser, source: Source, *, resume: bool, progress: Progress
) -> dict[str, ColumnType]:
    """Start a job, or check that the one to resume is the same; return the columns of the input."""
    files.check_is_ours()
    plan = job.plan(parser)
    if files.is_started:
        if not resume:
            raise DataError(
                f"{files.folder}: an unfinished job is there: continue it with --resume, or remove the folder to "
                "start over"
            )
        before = files.read_plan()
        check_same_plan(before, plan, files.folder)
        return {name: ColumnType(kind) for name, kind in before["columns"].items()}
    if resume:
        progress.message(f"{files.folder}: there is no job to resume: starting a new one")
    replaced = [name for name in source.names if name in PREDICTED]
    if replaced:
        progress.message(f"{job.input}: the prediction replaces the columns {', '.join(replaced)}")
    # Only the whole of a JSONL file shows its columns, and JSONL output does not need them.
    columns = source.columns() if job.output_format != OutputFormat.JSONL else {}
    files.write_plan({**plan, "columns": columns})
    return columns
