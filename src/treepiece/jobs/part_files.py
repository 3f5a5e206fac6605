"""The folder that keeps the parts of an output until all are complete.

    plan.json                  what the output depends on
    000000000500.part          the rows from number 500 on, in the format of the output
    000000000500.json          the number of these rows and their outcome; it is written last
    joined.json                the checksum of the output, written just before the output gets its name

A file is either complete or missing, so a job can be killed at any time. A part with an outcome is not computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from treepiece.bundle import replace_files
from treepiece.errors import DataError
from treepiece.jobs.job import EXAMPLES, JobSummary, cannot, readable
from treepiece.jobs.sinks import Sink
from treepiece.jobs.sources import Chunk

PLAN = "plan.json"
JOINED = "joined.json"
_DRAFT = "output.draft"
_OURS = {PLAN, JOINED, _DRAFT, f".{PLAN}.draft", f".{JOINED}.draft"}


@dataclass(frozen=True)
class OutputPart:
    """A chunk of rows with their predictions in the format of the output; `first` is the number of the first row."""

    first: int
    summary: JobSummary
    data: bytes


class PartFiles:
    """The parts of one output; their folder is next to it."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.folder = output.with_name(f"{output.name}.parts")

    @property
    def is_started(self) -> bool:
        """Whether a job was started and has not finished."""
        return (self.folder / PLAN).exists()

    def read_plan(self) -> dict[str, Any]:
        """Return the plan of the job that was started."""
        plan = _read_json(self.folder / PLAN)
        if plan is None:
            raise DataError(f"{self.folder / PLAN}: damaged: remove the folder to start over")
        return plan

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Start a job."""
        self._write({PLAN: json.dumps(plan, indent=1).encode()})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, and lock it; the system releases the lock when the process ends."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot("written", self.output, error) from None
        with _lock(self.folder):
            try:
                yield
            finally:
                with suppress(OSError):
                    self.folder.rmdir()  # only if it is empty

    def check_is_ours(self) -> None:
        """Raise if the folder has files, but no job."""
        others = [path for path in self.folder.iterdir() if path.name not in _OURS]
        if others and not self.is_started:
            raise DataError(f"{self.folder}: holds other files and no {PLAN}: rename it, or name another output")

    def finished(self, chunks: Sequence[Chunk]) -> dict[int, JobSummary]:
        """Return the outcomes of the parts that are complete, by the number of their first row."""
        found = {}
        for chunk in chunks:
            value = _read_json(self._path(chunk.first, "json"))
            if value is not None and value.get("rows") == chunk.rows:
                found[chunk.first] = JobSummary(**value)
        return found

    def write(self, part: OutputPart) -> None:
        """Save a part: its rows first, then the outcome, which marks it as complete."""
        summary = json.dumps(asdict(part.summary)).encode()
        self._write({self._path(part.first, "part").name: part.data, self._path(part.first, "json").name: summary})

    def _path(self, first: int, kind: str) -> Path:
        return self.folder / f"{first:012}.{kind}"

    def _write(self, files: Mapping[str, bytes]) -> None:
        try:
            replace_files(self.folder, files)
        except OSError as error:
            raise self._unfinished(error) from None

    def _unfinished(self, error: OSError) -> DataError:
        return DataError(
            f"{self.output}: cannot be written: {error.strerror or error}; finished rows are kept: free some space, "
            "then continue with --resume"
        )

    def join(self, chunks: Sequence[Chunk], sink: Sink, *, overwrite: bool) -> None:
        """Write the output from all parts, and remove them."""
        draft = self.folder / _DRAFT
        try:
            with draft.open("wb") as file:
                sink.join((self._path(chunk.first, "part") for chunk in chunks), file)
                file.flush()
                os.fsync(file.fileno())
            self._write({JOINED: json.dumps({"sha256": _digest(draft)}).encode()})
            check_absent(self.output, overwrite=overwrite)
            os.replace(draft, self.output)
        except OSError as error:
            raise self._unfinished(error) from None
        finally:
            draft.unlink(missing_ok=True)
        self.remove()

    def is_joined(self) -> bool:
        """Return whether the output exists and was made from these parts."""
        joined = _read_json(self.folder / JOINED)
        return joined is not None and self.output.is_file() and _digest(self.output) == joined.get("sha256")

    def remove(self) -> None:
        """Remove the folder; the files that mark the job as finished are removed last."""
        with suppress(OSError):  # the output is complete, and the next job removes the folder
            paths = sorted(self.folder.iterdir(), key=lambda path: (path.name == JOINED, path.name == PLAN))
            for path in paths:
                path.unlink()
            self.folder.rmdir()


def summarize(parts: Sequence[JobSummary]) -> JobSummary:
    """Return the outcome of all parts together."""
    rows, errors, not_understood = (
        sum(getattr(part, name) for part in parts) for name in ("rows", "errors", "not_understood")
    )
    return JobSummary(rows, errors, not_understood, [line for part in parts for line in part.examples][:EXAMPLES])


def check_absent(output: Path, *, overwrite: bool) -> None:
    """Raise if there is an output that must not be replaced."""
    if output.exists() and not output.is_file():
        raise DataError(f"{output}: not a file: name another output")
    if output.exists() and not overwrite:
        raise DataError(f"{output}: exists already: remove it, or give --overwrite to replace it")


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows has none
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems have no locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataError(f"{folder}: another process is working on it: wait until it ends") from None
        yield
    finally:
        os.close(handle)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a file; None if there is none."""
    try:
        with readable(path):
            value = json.loads(path.read_bytes()) if path.exists() else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
