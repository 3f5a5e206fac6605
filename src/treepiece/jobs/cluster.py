"""A job on a Ray cluster, as a pipeline of Ray Data; nothing else imports Ray.

Pieces go out as rows of a dataset, each a few numbers. On each core an actor has a parser: it reads the rows of a piece
from the file, parses them, and sends back the part. So the input and the model must be where every machine finds them
by the same name, as on a shared disk. The output is written by the process that runs the job.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from types import ModuleType
from typing import Any

from treepiece.errors import DataError
from treepiece.jobs.columns import Kind
from treepiece.jobs.job import Job
from treepiece.jobs.sources import Piece
from treepiece.jobs.work import Part, PartFacts, Worker
from treepiece.runtime.parser import Parser

_MOST_BLOCKS = 4000

Batch = dict[str, Any]


class Actor:
    """A parser in a process of the cluster. It has one thread: there are as many actors as cores."""

    def __init__(self, job: Job, columns: Mapping[str, Kind], model: str, precision: str) -> None:
        self.worker = Worker(job, columns, Parser.load(model, precision=precision, threads=1))

    def __call__(self, batch: Batch) -> Batch:
        """Return the parts of a batch of pieces."""
        numbers = zip(*(batch[name].tolist() for name in ("first", "rows", "place", "size")), strict=True)
        parts = [self.worker(Piece(*few)) for few in numbers]
        return {
            "facts": [json.dumps(part.facts.to_json()) for part in parts],
            "data": [part.data for part in parts],
        }


def make_parts(
    job: Job, parser: Parser, columns: Mapping[str, Kind], workers: int | None, pieces: Sequence[Piece]
) -> Generator[Part, None, None]:
    """Yield the parts of pieces as the cluster makes them: in any order."""
    if not pieces:
        return
    with _connected() as ray:
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        size = min(cores, len(pieces), workers or cores)
        items = [dict(zip(("first", "rows", "place", "size"), astuple(piece), strict=True)) for piece in pieces]
        # A block is what an actor takes at a time; a small one is soon back, and then it is safe.
        dataset = ray.data.from_items(items, override_num_blocks=min(len(items), _MOST_BLOCKS)).map_batches(
            Actor,
            fn_constructor_args=(job, dict(columns), str(parser.bundle.folder.resolve()), str(parser.precision)),
            batch_size=1,
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=size),
        )
        for row in dataset.iter_rows():
            yield Part(PartFacts(**json.loads(row["facts"])), row["data"])


def import_ray() -> ModuleType:
    """Return Ray with Ray Data; raise where they are not installed."""
    import ray
    import ray.data

    module: ModuleType = ray
    return module


@contextmanager
def _connected() -> Iterator[ModuleType]:
    """Give Ray with a cluster: that which this process has, or that RAY_ADDRESS names, or a new one on this machine."""
    ray = import_ray()
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise DataError(f"no Ray cluster can be reached or started: {_reason(error)}: check RAY_ADDRESS") from None
    context = ray.data.DataContext.get_current()
    shown, context.enable_progress_bars = context.enable_progress_bars, False  # a job has a bar of its own
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise DataError(
            f"the Ray job failed: {_reason(error)}; the rows that are done are kept: go on with --resume"
        ) from None
    finally:
        context.enable_progress_bars = shown
        if is_ours:
            ray.shutdown()


def _reason(error: BaseException) -> str:
    """Return the last line of what Ray says: what comes before is where in Ray it was."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{lines[-1] if lines else type(error).__name__:.300}"
