"""A job on a Ray cluster, as a Ray Data pipeline; nothing else imports Ray.

Chunks are rows of a dataset, a few numbers each. Each core has an actor with a parser: it reads the rows of a chunk
from the file, parses them, and returns the part. So the input and the model must have the same path on every machine,
as on a shared disk. The process that runs the job writes the output.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import ray
import ray.data

from treepiece.errors import DataError
from treepiece.jobs.columns import ColumnType
from treepiece.jobs.job import Job, JobSummary
from treepiece.jobs.part_files import OutputPart
from treepiece.jobs.sources import Chunk
from treepiece.jobs.worker import Worker
from treepiece.runtime.parser import Parser

_MAX_BLOCKS = 4000


class Actor:
    """A parser in a process of the cluster, with one thread: there are as many actors as cores."""

    def __init__(
        self, job: Job, columns: Mapping[str, ColumnType], model: str, precision: str, *, spelling: bool
    ) -> None:
        parser = Parser.load(model, precision=precision, threads=1, spelling=spelling)
        self.worker = Worker(job, columns, parser)

    def __call__(self, chunk: dict[str, int]) -> dict[str, Any]:
        """Return the part for a chunk."""
        part = self.worker(Chunk(**chunk))
        return {"first": part.first, "summary": json.dumps(asdict(part.summary)), "data": part.data}


def make_parts(
    job: Job, parser: Parser, columns: Mapping[str, ColumnType], workers: int | None, chunks: Sequence[Chunk]
) -> Generator[OutputPart, None, None]:
    """Yield the parts for chunks as the cluster completes them, in any order."""
    if not chunks:
        return
    with _connected():
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        size = min(cores, len(chunks), workers or cores)
        items = [asdict(chunk) for chunk in chunks]
        # An actor takes one block at a time; the rows of a small one are saved soon.
        dataset = ray.data.from_items(items, override_num_blocks=min(len(items), _MAX_BLOCKS)).map(
            Actor,
            fn_constructor_args=(job, dict(columns), str(parser.bundle.folder.resolve()), str(parser.precision)),
            fn_constructor_kwargs={"spelling": parser.corrects_spelling},
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=size),
        )
        for row in dataset.iter_rows():
            yield OutputPart(int(row["first"]), JobSummary(**json.loads(row["summary"])), row["data"])


@contextmanager
def _connected() -> Iterator[None]:
    """Connect Ray with a cluster: the one of this process, the one that RAY_ADDRESS names, or a new one."""
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise DataError(f"no Ray cluster can be reached or started: {_reason(error)}: check RAY_ADDRESS") from None
    context = ray.data.DataContext.get_current()
    shown, context.enable_progress_bars = context.enable_progress_bars, False  # a job has its own bar
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    except ray.exceptions.RayError as error:
        raise DataError(
            f"the Ray job failed: {_reason(error)}; finished rows are kept: continue with --resume"
        ) from None
    finally:
        context.enable_progress_bars = shown
        if is_ours:
            ray.shutdown()


def _reason(error: BaseException) -> str:
    """Return the last line of a Ray error: the lines before it are a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{lines[-1] if lines else type(error).__name__:.300}"
