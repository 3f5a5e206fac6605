"""Does parts one after the other, and keeps what each has found out."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from time import monotonic

from reproduction.machine import describe_machine
from reproduction.part import Job, Part
from reproduction.states import State, standing_of
from reproduction.store import Record, Store, needs_of
from treepiece.cli.console import note
from treepiece.errors import TreepieceError


def run_parts(chosen: Sequence[Part], parts: Sequence[Part], store: Store) -> list[str]:
    """Do the chosen parts that are not done, and return the names of those that failed or still wait for others.

    A part that fails does not keep the others from being done.
    """
    left: list[str] = []
    for number, part in enumerate(chosen, start=1):
        standing = standing_of(part, parts, store)
        if standing.state is State.DONE:
            continue
        if standing.job is None:
            note(f"{part.name}: waits for {', '.join(standing.waits_for)}: not done")
            left.append(part.name)
            continue
        note(f"[{number} of {len(chosen)}] {part.name}: {part.title}{_remark(standing.state)}")
        try:
            _do(standing.job)
        except (TreepieceError, OSError) as error:
            note(f"{part.name}: failed: {error}")
            left.append(part.name)
    return left


def _do(job: Job) -> None:
    """Do a part and write down what it has found out; only then is its folder cleared."""
    begin = monotonic()
    job.folder.mkdir(parents=True, exist_ok=True)
    result = job.part.work(job)
    seconds = monotonic() - begin
    job.store.write(
        Record(
            job.part.name, job.fingerprint, job.part.inputs, needs_of(job.needs), describe_machine(), seconds, result
        )
    )
    if not job.part.keeps:
        shutil.rmtree(job.folder, ignore_errors=True)
    note(f"{job.part.name}: done in {format_seconds(seconds)}")


def format_seconds(seconds: float) -> str:
    """Return a time as people say it.

    >>> format_seconds(5.04), format_seconds(754), format_seconds(9000)
    ('5.0 s', '13 min', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _remark(state: State) -> str:
    return {
        State.BEGUN: " (goes on where it stopped)",
        State.OUTDATED: " (again: what it was made from has changed)",
    }.get(state, "")
