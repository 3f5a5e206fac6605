"""The plan of a job: what the output depends on, so that only the same job is gone on with."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from treepiece.bundle import MANIFEST
from treepiece.errors import OptionError
from treepiece.jobs.job import Job, cannot
from treepiece.runtime.parser import Parser

VERSION = 1
_END = 1 << 20


def make_plan(job: Job, parser: Parser) -> dict[str, Any]:
    """Return the plan of a job, as a value that `json.dumps` can write."""
    return {
        "version": VERSION,
        "treepiece": version("treepiece"),
        "input": fingerprint(job.input),
        "model": hashlib.sha256((parser.bundle.folder / MANIFEST).read_bytes()).hexdigest(),
        "options": {**job.options(), "precision": str(parser.precision)},
    }


def fingerprint(path: Path) -> dict[str, Any]:
    """Return what tells a file from another: its size and the checksums of its first and last megabyte.

    The time of its last change is no part of it: a file that was copied is the same file.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_END)
            file.seek(max(0, size - _END))
            tail = file.read(_END)
    except OSError as error:
        raise cannot("read", path, error) from None
    return {"bytes": size, "head": hashlib.sha256(head).hexdigest(), "tail": hashlib.sha256(tail).hexdigest()}


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Raise if a job is another than the one that was begun, and say in what."""
    differences = [
        f"{name} was {_show(before.get(name))}, now it is {_show(now[name])}"
        for name in ("version", "treepiece")
        if before.get(name) != now[name]
    ]
    differences += [f"the {name} has changed" for name in ("input", "model") if before.get(name) != now[name]]
    options = before.get("options")
    options = options if isinstance(options, dict) else {}
    differences += [
        f"{name} was {_show(options.get(name))}, now it is {_show(value)}"
        for name, value in now["options"].items()
        if options.get(name) != value
    ]
    if differences:
        raise OptionError(
            f"--resume: {folder} is of another job: {'; '.join(differences)}: give what it began with, or remove the "
            "folder to begin again"
        )


def _show(value: object) -> str:
    return "not given" if value is None else f"{value!s:.60}"
