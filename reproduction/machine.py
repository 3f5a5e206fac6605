"""The machine that a part ran on, as far as it explains a figure: no names and no paths."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

from reproduction.store import Json
from treepiece.runtime.cores import count_cores

_LIBRARIES = ("treepiece", "torch", "transformers", "onnxruntime", "numpy", "tokenizers", "sentencepiece")


def describe_machine() -> Json:
    """Return the processor, how many cores may be used, and the versions of Python and of the libraries."""
    return {
        "cpu": _processor(Path("/proc/cpuinfo")),
        "cores": count_cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "libraries": {name: version for name in _LIBRARIES if (version := _version(name))},
    }


def _processor(facts: Path) -> str:
    """Return the name of the processor as Linux has it, or what Python knows of it."""
    try:
        lines = facts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
