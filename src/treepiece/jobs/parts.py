"""The folder that a job keeps its parts in until all are done.

    plan.json                  what the output depends on
    000000000500.part          the rows from number 500 on, in the format of the output
    000000000500.json          which rows these are, and what came of them; it is written last
    joined.json                the checksum of the whole output, just before it gets its name

Every file is whole or not there, so a job can be killed at any moment; a part that has its facts is not made again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from treepiece.errors import DataError
from treepiece.files import replace_files
from treepiece.jobs.job import Summary, cannot
from treepiece.jobs.sinks import Sink
from treepiece.jobs.sources import Piece
from treepiece.jobs.work import Part, PartFacts

PLAN = "plan.json"
JOINED = "joined.json"
_DRAFT = "output.draft"
_OURS = {PLAN, JOINED, _DRAFT, f".{PLAN}.draft", f".{JOINED}.draft"}
_EXAMPLES = 5


def parts_folder(output: Path) -> Path:
    """Return where the parts of an output are kept: next to it."""
    return output.with_name(f"{output.name}.parts")


class Parts:
    """The parts of one output."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.folder = parts_folder(output)

    @property
    def is_begun(self) -> bool:
        """Whether a job was begun and has not come to its end."""
        return (self.folder / PLAN).exists()

    def read_plan(self) -> dict[str, Any]:
        """Return the plan of the job that was begun."""
        plan = _read_json(self.folder / PLAN)
        if plan is None:
            raise DataError(f"{self.folder / PLAN}: damaged: remove the folder to begin again")
        return plan

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Begin a job."""
        self._write({PLAN: json.dumps(plan, indent=1).encode()})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, and keep other processes out of it; the lock goes with the process, however that ends."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot("written", self.output, error) from None
        with _lock(self.folder):
            try:
                yield
            finally:
                with suppress(OSError):
                    self.folder.rmdir()  # only if nothing was kept in it

    def check_is_ours(self) -> None:
        """Raise if the folder has something in it, but no job."""
        others = [path for path in self.folder.iterdir() if path.name not in _OURS]
        if others and not self.is_begun:
            raise DataError(f"{self.folder}: has other files in it, and no {PLAN}: rename it, or name another output")

    def finished(self, pieces: Sequence[Piece]) -> dict[int, PartFacts]:
        """Return the facts of the parts that are done, by the number of their first row."""
        found = {}
        for piece in pieces:
            facts = _read_json(self._path(piece.first, "json"))
            if facts is not None and (facts.get("first"), facts.get("rows")) == (piece.first, piece.rows):
                found[piece.first] = PartFacts(**facts)
        return found

    def write(self, part: Part) -> None:
        """Keep a part: its rows first, then what makes it count."""
        facts = json.dumps(part.facts.to_json()).encode()
        number = part.facts.first
        self._write({self._path(number, "part").name: part.data, self._path(number, "json").name: facts})

    def _path(self, first: int, kind: str) -> Path:
        return self.folder / f"{first:012}.{kind}"

    def _write(self, files: Mapping[str, bytes]) -> None:
        try:
            replace_files(self.folder, files)
        except OSError as error:
            raise self._unfinished(error) from None

    def _unfinished(self, error: OSError) -> DataError:
        return DataError(
            f"{self.output}: cannot be written: {error.strerror or error}; the rows that are done are kept: make room, "
            "then go on with --resume"
        )

    def join(self, pieces: Sequence[Piece], sink: Sink, *, overwrite: bool) -> None:
        """Make the output of all parts, and remove them."""
        draft = self.folder / _DRAFT
        try:
            with draft.open("wb") as file:
                sink.join((self._path(piece.first, "part") for piece in pieces), file)
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
        """Return whether the output is there and is the one that was made of these parts."""
        joined = _read_json(self.folder / JOINED)
        return joined is not None and self.output.is_file() and _digest(self.output) == joined.get("sha256")

    def remove(self) -> None:
        """Remove the folder; what tells that the job has come to its end is the last to go."""
        with suppress(OSError):  # the output is complete: a folder that stays does no harm, the next job removes it
            paths = sorted(self.folder.iterdir(), key=lambda path: (path.name == JOINED, path.name == PLAN))
            for path in paths:
                path.unlink()
            self.folder.rmdir()


def summarise(facts: Sequence[PartFacts]) -> Summary:
    """Return what came of all parts."""
    examples = [example for one in facts for example in one.examples]
    return Summary(
        sum(one.rows for one in facts),
        sum(one.bad for one in facts),
        sum(one.not_understood for one in facts),
        examples[:_EXAMPLES],
    )


def check_absent(output: Path, *, overwrite: bool) -> None:
    """Raise if there is an output that must not be replaced."""
    if output.exists() and not output.is_file():
        raise DataError(f"{output}: expected the name of a file, found something else there: name another")
    if output.exists() and not overwrite:
        raise DataError(f"{output}: exists already: remove it, or give --overwrite to replace it")


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # there is none on Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems know no locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataError(f"{folder}: another process is at work on it: wait for its end") from None
        yield
    finally:
        os.close(handle)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a file; None if there is none."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise cannot("read", path, error) from None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
