"""What a figure was measured on."""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from treepiece.runtime.cores import count_cores

_PACKAGES = ("treepiece", "onnxruntime", "numpy", "tokenizers", "torch", "transformers")


def machine() -> dict[str, object]:
    """Return the name of the processor, how many cores may be used, and versions of what is installed."""
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {"cpu": cpu_name(), "cores": count_cores(), "versions": versions}


def cpu_name(file: Path = Path("/proc/cpuinfo")) -> str:
    """Return what the processor calls itself, or its architecture where it does not say."""
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
