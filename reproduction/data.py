"""TOPv2 as the parts use it: whole, or an error that lists what is missing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from treepiece.data.reader import read_rows
from treepiece.data.rows import Row
from treepiece.errors import DataError

DOMAINS = ("alarm", "event", "messaging", "music", "navigation", "reminder", "timer", "weather")
TARGETS = ("reminder", "weather")
"""The domains of the low-resource splits."""
SPIS = (10, 25, 50, 100, 250, 500, 1000)
"""Samples per intent and slot: how much of a domain a low-resource split has."""
LOW_RESOURCE = "low_resource_splits"

_HINT = "get all of TOPv2 with `treepiece data topv2 --output DIR`, and name its folder with --topv2"


def split_files(split: str) -> list[str]:
    """Return the files of a split of TOPv2."""
    return [f"{domain}_{split}.tsv" for domain in DOMAINS]


def low_resource_file(domain: str, split: str, spis: int) -> str:
    """Return the file of a low-resource split (`train` or `valid`).

    >>> low_resource_file("weather", "valid", 25)
    'low_resource_splits/weather_valid_25spis.tsv'
    """
    return f"{LOW_RESOURCE}/{domain}_{split}_{spis}spis.tsv"


def check_files(folder: Path, names: Sequence[str]) -> None:
    """Raise, before any work is done, if files of TOPv2 are missing; all of them are named."""
    if not folder.is_dir():
        raise DataError(f"{folder}: TOPv2 is not there: {_HINT}")
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise DataError(f"{folder}: {len(missing)} of {len(names)} files are missing: {', '.join(missing)}; {_HINT}")


def file_digest(folder: Path, names: Sequence[str]) -> str:
    """Return a checksum of the contents of files."""
    return hashlib.sha256(b"".join(_digest(folder / name) for name in names)).hexdigest()


@lru_cache(maxsize=1024)
def _digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


@lru_cache(maxsize=2)
def rows_of_split(folder: Path, split: str) -> tuple[Row, ...]:
    """Return all rows of a split; the last two are kept, because reading them takes seconds and parts share them."""
    return tuple(read_rows(folder, split=split))


def rows_of_file(folder: Path, name: str) -> list[Row]:
    """Return the rows of one file."""
    return list(read_rows(folder / name))
