"""Work in parts, each with one result on disk: a part is done once, and is done again where its sources have changed.

WORK/parts/NAME.json              the result of a part, where it was made, and what from
WORK/files/NAME-FINGERPRINT/      what a part works with: models, exported bundles, intermediate results
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any, Self

from experiments.timing import machine
from treepiece.bundle import replace_files
from treepiece.cli.console import note
from treepiece.errors import DataError, TreepieceError

Json = dict[str, Any]


def digest(value: object) -> str:
    """Return a checksum of a value that JSON can write, which does not depend on the order of its keys.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def current_commit() -> str:
    """Return the commit that is checked out; with a plus sign where files differ from it."""
    command = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--abbrev=7",
        "--exclude=*",
        "--dirty=+",
    ]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@dataclass(frozen=True)
class Record:
    """The result of a part and its provenance.

    `command` makes it again, `commit` is the code that made it, `inputs` is all that it depends on, and `needs` has
    the checksum of the result of every part that it started from.
    """

    part: str
    command: str
    commit: str
    machine: Json
    seconds: float | None
    inputs: Json
    needs: dict[str, str]
    result: Json

    @property
    def fingerprint(self) -> str:
        """A checksum of all that the result depends on."""
        return digest({"inputs": self.inputs, "needs": self.needs})

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return a record that was written before; raise `KeyError` or `TypeError` if it is none."""
        return cls(**{field.name: value[field.name] for field in fields(cls)})


class Store:
    """The results on disk: one JSON file per part, which is whole or not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> Record | None:
        """Return the record of a part; None if it is not done."""
        path = self._path(name)
        try:
            return Record.from_json(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}: not a result of this program: delete the file to do the part again") from None

    def write(self, record: Record) -> None:
        """Keep a record; what was there before is replaced at once or not at all."""
        path = self._path(record.part)
        try:
            replace_files(path.parent, {path.name: json.dumps(asdict(record), indent=1).encode()})
        except OSError as error:
            raise DataError(f"{path}: cannot be written: {error.strerror}") from None

    def records(self) -> dict[str, Record]:
        """Return the records of all parts that are done, by name."""
        paths = sorted(path for path in (self.folder / "parts").glob("*.json") if not path.name.startswith("."))
        return {path.stem: record for path in paths if (record := self.read(path.stem))}

    def files(self, name: str, fingerprint: str) -> Path:
        """Return the folder that a part works in. It is another one where the part is made from something else."""
        return self.folder / "files" / f"{name}-{fingerprint[:8]}"

    def _path(self, name: str) -> Path:
        return self.folder / "parts" / f"{name}.json"


@dataclass(frozen=True)
class Part:
    """Work that ends with one result.

    `inputs` is all that the result depends on, in a form that JSON can write, and `needs` the parts whose results it
    starts from; where any of these change, the part is done again. `keeps` tells whether its folder is needed later.
    """

    name: str
    title: str
    inputs: Json
    work: Callable[[Job], Json]
    needs: tuple[str, ...] = ()
    keeps: bool = False

    def is_chosen(self, wanted: str) -> bool:
        """Return whether a name means this part: its own, or that of a group, such as `train`."""
        return self.name == wanted or self.name.startswith(f"{wanted}-")


@dataclass(frozen=True)
class Job:
    """One part at work: the results that it needs, and a folder of its own that survives an interruption."""

    part: Part
    store: Store
    needs: Mapping[str, Record]

    @property
    def needed(self) -> dict[str, str]:
        """The checksums of the results that the part starts from."""
        return {name: digest(record.result) for name, record in self.needs.items()}

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of all that the result depends on."""
        return digest({"inputs": self.part.inputs, "needs": self.needed})

    @property
    def folder(self) -> Path:
        """The part's own folder."""
        return self.store.files(self.part.name, self.fingerprint)

    def folder_of(self, name: str) -> Path:
        """Return the folder of a part that this one needs."""
        return self.store.files(name, self.needs[name].fingerprint)

    def piece(self, name: str, make: Callable[[], Json]) -> Json:
        """Return what was made before an interruption, or make it now and keep it."""
        file = f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.json"
        try:
            kept: Json = json.loads((self.folder / "pieces" / file).read_bytes())
        except (FileNotFoundError, ValueError):
            kept = make()
            replace_files(self.folder / "pieces", {file: json.dumps(kept).encode()})
        return kept


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
    needs = {name: record for name in part.needs if (record := store.read(name))}
    if unmet or len(needs) < len(part.needs):
        return Standing(State.WAITING, None, unmet)
    job = Job(part, store, needs)
    record = store.read(part.name)
    if record is not None and record.fingerprint == job.fingerprint:
        return Standing(State.DONE, job)
    if job.folder.is_dir():
        return Standing(State.BEGUN, job)
    return Standing(State.TO_DO if record is None else State.OUTDATED, job)


def show_parts(chosen: Sequence[Part], parts: Sequence[Part], store: Store) -> None:
    """Write a line for each part on standard error, and how many there are in each state."""
    lines = []
    counts: Counter[State] = Counter()
    for part in chosen:
        state = standing_of(part, parts, store).state
        counts[state] += 1
        record = store.read(part.name) if state is State.DONE else None
        lines.append(
            (part.name, f"done in {format_seconds(record.seconds or 0)}" if record else str(state), part.title)
        )
    widths = [max((len(line[column]) for line in lines), default=0) for column in (0, 1)]
    for name, shown, title in lines:
        note(f"{name:{widths[0]}}  {shown:{widths[1]}}  {title}")
    note(", ".join(f"{count} {state}" for state, count in counts.items()) or "there are no parts to do")


_REMARKS = {State.BEGUN: " (continues)", State.OUTDATED: " (again: its sources have changed)"}


def run_parts(chosen: Sequence[Part], parts: Sequence[Part], store: Store, command: str) -> list[str]:
    """Do the chosen parts that are not done, and return the names of those that failed or still wait for others.

    A part that fails does not keep the others from being done. `command` does a part when its name follows.
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
        note(f"[{number} of {len(chosen)}] {part.name}: {part.title}{_REMARKS.get(standing.state, '')}")
        try:
            _do(standing.job, f"{command} {part.name}")
        except (TreepieceError, OSError) as error:
            note(f"{part.name}: failed: {error}")
            left.append(part.name)
    return left


def _do(job: Job, command: str) -> None:
    """Do a part and write down its result; only then is its folder cleared."""
    begin = monotonic()
    job.folder.mkdir(parents=True, exist_ok=True)
    result = job.part.work(job)
    seconds = monotonic() - begin
    provenance = command, current_commit(), machine(), seconds
    job.store.write(Record(job.part.name, *provenance, job.part.inputs, job.needed, result))
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
