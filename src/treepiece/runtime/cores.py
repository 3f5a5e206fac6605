"""The number of cores that this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def count_cores() -> int:
    """Return the number of cores for this process: those that it may run on, limited by its share of CPU time.

    A container may see all cores of a machine, but get the time of one. More threads would only wait for each other.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([cores, *(quota for limit in read_limits(_GROUPS, _OWN) if (quota := cores_of(limit)) is not None)])


def cores_of(limit: str) -> int | None:
    """Return the number of cores that a control group's limit allows, at least 1; None if there is no limit.

    >>> cores_of("150000 100000"), cores_of("10000 100000"), cores_of("max 100000")
    (2, 1, None)
    """
    match limit.split():
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
            return max(1, -(-int(quota) // int(period)))
        case _:
            return None


def read_limits(groups: Path, own: Path) -> list[str]:
    """Return the limits of this process's control group and its parents (version 2, Linux only).

    In a container the folder `groups` is usually the container's own group; under systemd the group is below it.
    """
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    name = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    folder = groups if ".." in name.split("/") else groups / name  # a group that is not visible from here
    found = []
    for place in (folder, *folder.parents):
        if place.is_relative_to(groups):
            with suppress(OSError, UnicodeDecodeError):
                found.append((place / "cpu.max").read_text(encoding="ascii"))
    return found
