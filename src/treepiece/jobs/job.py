"""What a job is: which rows to parse, how, and where the answers go."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from treepiece.errors import DataError, OptionError
from treepiece.options import fraction, whole_number

PART_ROWS = 500
"""How many rows a part has: a few seconds of work, which is what a crash can cost."""

_Format = TypeVar("_Format", bound=StrEnum)


class Engine(StrEnum):
    """What does the work: this process, or a Ray cluster."""

    LOCAL = "local"
    RAY = "ray"


class InputFormat(StrEnum):
    """The formats that rows are read from; a file's name ends with one of them."""

    TXT = "txt"
    JSONL = "jsonl"
    TSV = "tsv"
    PARQUET = "parquet"


class OutputFormat(StrEnum):
    """The formats that rows are written in."""

    JSONL = "jsonl"
    TSV = "tsv"
    PARQUET = "parquet"


def format_of(option: str, path: Path, kind: type[_Format]) -> _Format:
    """Return the format that the end of a file's name says.

    >>> format_of("--input", Path("rows.JSONL"), InputFormat).value
    'jsonl'
    """
    try:
        return kind(path.suffix[1:].lower())
    except ValueError:
        endings = ", ".join(f".{name}" for name in kind)
        raise OptionError(f"{option} {path}: the format is told from the name, which must end with {endings}") from None


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
        # Absolute, because the processes of a cluster have other working folders.
        object.__setattr__(self, "input", Path(os.path.abspath(self.input)))
        object.__setattr__(self, "output", Path(os.path.abspath(self.output)))
        object.__setattr__(self, "input_format", format_of("--input", self.input, InputFormat))
        object.__setattr__(self, "output_format", format_of("--output", self.output, OutputFormat))
        whole_number("--nbest", self.nbest, 1)
        whole_number("the rows of a part", self.part_rows, 1)
        fraction("--min-confidence", self.min_confidence)
        if self.nbest > 1 and self.output_format != OutputFormat.JSONL:
            raise OptionError(f"--nbest: several readings of a row can be written as .jsonl only, got {self.output}")
        if self.output.exists() and self.input.exists() and self.output.samefile(self.input):
            raise OptionError(f"--output {self.output}: this is the input: name another file")

    def options(self) -> dict[str, Any]:
        """Return what the rows of the output depend on, besides the input and the model."""
        return {
            "input format": str(self.input_format),
            "output format": str(self.output_format),
            "column": self.column,
            "nbest": self.nbest,
            "min confidence": float(self.min_confidence),
            "rows a part": self.part_rows,
        }


@dataclass
class Summary:
    """What came of a job. `examples` are the first rows with an error."""

    rows: int = 0
    bad: int = 0
    not_understood: int = 0
    examples: list[str] = field(default_factory=list)


def cannot(action: str, path: Path, error: OSError) -> DataError:
    """Return the error for a file that cannot be read or written."""
    return DataError(f"{path}: cannot be {action}: {error.strerror or error}")
