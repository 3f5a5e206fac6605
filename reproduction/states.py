"""How far a reproduction is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from reproduction.part import Job, Part, start_job
from reproduction.store import Store


class State(StrEnum):
    """How far a part is."""

    DONE = "done"
    BEGUN = "begun"
    OUTDATED = "out of date"
    WAITING = "waiting"
    TO_DO = "to do"


@dataclass(frozen=True)
class Standing:
    """The state of a part, the job that it is to be done as, and the parts that it waits for."""

    state: State
    job: Job | None = None
    waits_for: tuple[str, ...] = ()


def standing_of(part: Part, parts: Sequence[Part], store: Store) -> Standing:
    """Return how far a part is: it is done only if all that it was made from is as it is now, back to the data."""
    by_name = {other.name: other for other in parts}
    unmet = tuple(name for name in part.needs if standing_of(by_name[name], parts, store).state is not State.DONE)
    job = start_job(part, store)
    if job is None or unmet:
        return Standing(State.WAITING, None, unmet)
    record = store.read(part.name)
    if record is not None and record.fingerprint == job.fingerprint:
        return Standing(State.DONE, job)
    if job.folder.is_dir():
        return Standing(State.BEGUN, job)
    return Standing(State.TO_DO if record is None else State.OUTDATED, job)
