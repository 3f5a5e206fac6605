"""Times systems against each other: in turns, row by row, with the encoder's share apart from that of decoding."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from treepiece.runtime.cores import count_cores

THREADS = 2
WARM_UP = 3
BLOCK = 20  # rows that a system parses before it is the next one's turn
CALM = 0.1  # seconds in which the threads of the system before stop looking for work
ENCODER = "encoder"
TORCH = "torch"
_PACKAGES = ("treepiece", "onnxruntime", "numpy", "tokenizers", "torch", "transformers", "sentencepiece")

Name = TypeVar("Name")
Milliseconds = npt.NDArray[np.float64]
"""One number for each row. Shape: (rows,)."""
Run = Callable[[int], object]
"""Parses the utterance of a number."""
Setting = tuple[str, str]
"""What runs, an architecture or a model kind, and the engine: torch, float or int8."""
Times = Mapping[Setting, Mapping[str, Milliseconds]]
"""The times of all systems in all settings. The one that is named `ENCODER` is the encoder of those beside it."""
System = tuple[Setting, str]
"""Where times are found."""


def machine() -> dict[str, object]:
    """Return what a figure was measured on: the processor, how many cores may be used, versions of what is installed.

    No names and no paths of the machine.
    """
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {"cpu": cpu_name(), "cores": count_cores(), "versions": versions}


def cpu_name(file: Path = Path("/proc/cpuinfo")) -> str:
    """Return what the processor calls itself, or its architecture where it does not say."""
    if file.is_file():
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def time_systems(runs: Mapping[Name, Run], n_rows: int, rounds: int) -> dict[Name, Milliseconds]:
    """Return the times of each system; a row counts with the median of its rounds."""
    times = {name: np.zeros((rounds, n_rows)) for name in runs}
    for turn in range(rounds):
        for first in range(0, n_rows, BLOCK):
            for name, run in runs.items():
                time.sleep(CALM)
                for _ in range(WARM_UP):
                    run(first)
                for item in range(first, min(first + BLOCK, n_rows)):
                    begin = time.perf_counter()
                    run(item)
                    times[name][turn, item] = (time.perf_counter() - begin) * 1e3
    return {name: np.median(rows, axis=0) for name, rows in times.items()}


def summarise(values: npt.NDArray[np.number]) -> dict[str, float]:
    """Return what tables show."""
    return {
        "median": float(np.median(values)),
        "p95": float(np.quantile(values, 0.95)),
        "mean": float(np.mean(values)),
    }


def time_table(times: Times, column: str) -> list[dict[str, object]]:
    """Return a row for each system in each setting: decoding and full parse; `column` says what runs."""
    rows: list[dict[str, object]] = []
    for (what, engine), systems in times.items():
        for name, values in systems.items():
            row: dict[str, object] = {column: what, "engine": engine, "system": str(name)}
            if name != ENCODER and ENCODER in systems:
                row["decoding"] = summarise(values - systems[ENCODER])
            rows.append({**row, "full": summarise(values)})
    return rows


@dataclass(frozen=True)
class Costs:
    """One number for each system: a statistic of its rows."""

    times: Times
    statistic: Callable[[Milliseconds], np.floating]

    def full(self, system: System) -> float:
        """Return the time of a full parse."""
        setting, name = system
        return float(self.statistic(self.times[setting][name]))

    def decoding(self, system: System) -> float:
        """Return the time of all that is not the encoder, which is taken off row by row."""
        setting, name = system
        return float(self.statistic(self.times[setting][name] - self.times[setting][ENCODER]))


def all_costs(times: Times) -> dict[str, Costs]:
    """Return the costs by what the names of ratios end in: nothing for medians, `_mean` for means."""
    return {"": Costs(times, np.median), "_mean": Costs(times, np.mean)}


def parser_ratios(costs: Costs, treepiece: System, ar: System | None, nar: System | None) -> dict[str, float]:
    """Return by name how TreePiece compares with its encoder and with those of the baselines that were timed."""
    setting, _ = treepiece
    ratios = {"full_over_encoder": costs.full(treepiece) / costs.full((setting, ENCODER))}
    if ar:
        ratios["ar_over_treepiece_decoding"] = costs.decoding(ar) / costs.decoding(treepiece)
    if nar:
        ratios["treepiece_over_nar_decoding"] = costs.decoding(treepiece) / costs.decoding(nar)
    if ar:
        ratios["ar_over_treepiece_full"] = costs.full(ar) / costs.full(treepiece)
    return ratios
