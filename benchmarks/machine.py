"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

_PACKAGES = ("treepiece", "onnxruntime", "numpy", "tokenizers", "torch", "transformers")


def machine() -> dict[str, object]:
    """Return the name of the processor, how many cores may be used, and versions."""
    versions = {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cpu": cpu_name(), "cores": cores, "versions": versions}


def cpu_name(file: Path = Path("/proc/cpuinfo")) -> str:
    """Return what the processor calls itself, or its architecture where it does not say."""
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
