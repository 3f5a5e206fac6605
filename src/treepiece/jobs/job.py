"""A job: its input, settings and output, and the plan that distinguishes jobs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from treepiece.bundle import MANIFEST
from treepiece.checks import whole_number
from treepiece.errors import DataError, OptionError

if TYPE_CHECKING:
    from treepiece.runtime.parser import Parser

PART_ROWS = 500
"""The number of rows in a part of the output: a few seconds of work, which a crash can cost."""
EXAMPLES = 5
"""The number of rows with an error that a summary quotes."""

_PLAN_VERSION = 4
_HASHED_BYTES = 1 << 20

_Format = TypeVar("_Format", bound=StrEnum)


class Engine(StrEnum):
    """Where a job runs: in this process, or on a Ray cluster."""

    LOCAL = "local"
    RAY = "ray"


class InputFormat(StrEnum):
    """The input formats; the file name ends with one of them."""

    TXT = "txt"
    JSONL = "jsonl"
    TSV = "tsv"
    PARQUET = "parquet"


class OutputFormat(StrEnum):
    """The output formats."""

    JSONL = "jsonl"
    TSV = "tsv"
    PARQUET = "parquet"


def format_of(option: str, path: Path, kind: type[_Format]) -> _Format:
    """Return the format that a file name ends with.

    >>> format_of("--input", Path("rows.JSONL"), InputFormat).value
    'jsonl'
    """
    try:
        return kind(path.suffix[1:].lower())
    except ValueError:
        endings = ", ".join(f".{name}" for name in kind)
        raise OptionError(f"{option} {path}: the file name gives the format and must end with {endings}") from None


@dataclass(frozen=True)
class Job:
    """Rows of a file to parse into another file."""

    input: Path
    output: Path
    column: str | None = None
    nbest: int = 1
    min_confidence: float = 0.0
    part_rows: int = PART_ROWS
    input_format: InputFormat = field(init=False)
    output_format: OutputFormat = field(init=False)

    def __post_init__(self) -> None:
        # Absolute, because the processes of a cluster have other working directories.
        object.__setattr__(self, "input", Path(os.path.abspath(self.input)))
        object.__setattr__(self, "output", Path(os.path.abspath(self.output)))
        object.__setattr__(self, "input_format", format_of("--input", self.input, InputFormat))
        object.__setattr__(self, "output_format", format_of("--output", self.output, OutputFormat))
        whole_number("part_rows", self.part_rows, 1)
        if self.nbest > 1 and self.output_format != OutputFormat.JSONL:
            raise OptionError(f"--nbest: only .jsonl can hold several candidates per row, got {self.output}")
        if self.output.exists() and self.input.exists() and self.output.samefile(self.input):
            raise OptionError(f"--output {self.output}: this is the input: name another file")

    def plan(self, parser: Parser) -> dict[str, Any]:
        """Return everything that the output depends on, as a value that `json.dumps` can write."""
        from importlib.metadata import version

        return {
            "version": _PLAN_VERSION,
            "treepiece": version("treepiece"),
            "input": fingerprint(self.input),
            "model": hashlib.sha256((parser.bundle.folder / MANIFEST).read_bytes()).hexdigest(),
            "input format": str(self.input_format),
            "output format": str(self.output_format),
            "column": self.column,
            "nbest": self.nbest,
            "min confidence": float(self.min_confidence),
            "rows per part": self.part_rows,
            "precision": str(parser.precision),
            "spelling": parser.corrects_spelling,
        }


@dataclass(frozen=True)
class JobSummary:
    """The outcome of a job or of a part of it. `examples` quotes the first rows with an error."""

    rows: int = 0
    errors: int = 0
    not_understood: int = 0
    examples: list[str] = field(default_factory=list)


def fingerprint(path: Path) -> dict[str, Any]:
    """Return a fingerprint of a file: its size and the checksums of its first and last megabyte.

    The modification time is left out: a copy is the same file.
    """
    with readable(path), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HASHED_BYTES)
        file.seek(max(0, size - _HASHED_BYTES))
        tail = file.read(_HASHED_BYTES)
    return {"bytes": size, "head": hashlib.sha256(head).hexdigest(), "tail": hashlib.sha256(tail).hexdigest()}


def check_same_plan(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Raise if a job differs from the one that was started, with the differences."""
    differences = [
        f"the {name} has changed"
        if name in ("input", "model")
        else f"{name} was {_show(before.get(name))}, now it is {_show(value)}"
        for name, value in now.items()
        if before.get(name) != value
    ]
    if differences:
        raise OptionError(
            f"--resume: {folder} belongs to another job: {'; '.join(differences)}: use the original options, or "
            "remove the folder to start over"
        )


def _show(value: object) -> str:
    return "not given" if value is None else f"{value!s:.60}"


def cannot(action: str, path: Path, error: OSError) -> DataError:
    """Return the error for a file that cannot be read or written."""
    return DataError(f"{path}: cannot be {action}: {error.strerror or error}")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn a failure to read a file inside the block into an error that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise cannot("read", path, error) from None
