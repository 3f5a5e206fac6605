"""TOPv2: where it is, and its rows."""

from __future__ import annotations

import hashlib
import os
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from treepiece.data.reader import read_rows
from treepiece.data.rows import Row
from treepiece.errors import DataError
from treepiece.trees.node import Node

DOMAINS = ("alarm", "event", "messaging", "music", "navigation", "reminder", "timer", "weather")
TARGETS = ("reminder", "weather")
"""The domains of the low-resource splits."""
SPIS = (10, 25, 50, 100, 250, 500, 1000)
"""Samples per intent and slot: how much of a domain a low-resource split has."""

VARIABLE = "TREEPIECE_TOPV2"
_BESIDE = Path(__file__).parents[2] / "shared" / "topv2"
_HINT = f"get all of TOPv2 with `treepiece data topv2 --output DIR`, and name its folder with --topv2 or {VARIABLE}"


def add_topv2(parser: ArgumentParser) -> None:
    """Add the option that says where TOPv2 is."""
    default = Path(os.environ.get(VARIABLE, _BESIDE))
    parser.add_argument("--topv2", type=Path, default=default, metavar="DIR", help=f"TOPv2  [default: {VARIABLE}]")


def split_files(split: str) -> list[str]:
    """Return the files of a split."""
    return [f"{domain}_{split}.tsv" for domain in DOMAINS]


def low_resource_file(domain: str, split: str, spis: int) -> str:
    """Return the file of a low-resource split (`train` or `valid`).

    >>> low_resource_file("weather", "valid", 25)
    'low_resource_splits/weather_valid_25spis.tsv'
    """
    return f"low_resource_splits/{domain}_{split}_{spis}spis.tsv"


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
    """Return all rows of a split; the last two splits are cached, because reading them takes seconds."""
    check_files(folder, ())
    return tuple(read_rows(folder, split=split))


def skeletons_of_split(folder: Path, split: str) -> list[Node]:
    """Return the skeletons of a split."""
    return [row.skeleton for row in rows_of_split(folder, split)]


def spread_rows(folder: Path, n_rows: int, is_wanted: Callable[[Row], bool] = lambda _: True) -> list[Row]:
    """Return rows of the eval split, evenly spread over those that are wanted."""
    rows = [row for row in rows_of_split(folder, "eval") if is_wanted(row)]
    return rows[:: max(1, len(rows) // n_rows)][:n_rows]


def texts_of(rows: Sequence[Row]) -> list[str]:
    """Return the utterances as they were typed."""
    return [row.frame.utterance for row in rows if row.frame]
