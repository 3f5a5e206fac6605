"""Builds the sdist and the wheel, and checks what they hold."""

from __future__ import annotations

import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tools.release.environments import Failed, run

MOST_MEGABYTES = 100
"""The largest file that PyPI takes."""


@dataclass(frozen=True)
class Release:
    """A repository, and where its release is built and checked."""

    root: Path
    torch: str
    """The version of PyTorch that environments with the `train` extra get."""

    @property
    def folder(self) -> Path:
        """Where logs and environments go."""
        return self.root / "build" / "release"

    @property
    def dist(self) -> Path:
        """Where the sdist and the wheel go."""
        return self.root / "dist"

    @property
    def wheel(self) -> Path:
        """The wheel that was built from the sdist."""
        return _only(self.dist, "*.whl")

    @property
    def sdist(self) -> Path:
        """The sdist."""
        return _only(self.dist, "*.tar.gz")


def build(release: Release, log: TextIO) -> str:
    """Build the sdist, a wheel from it and a wheel from the repository, which must be the same; return the sizes."""
    direct = release.folder / "direct"
    # setuptools puts all that it finds in build/lib into a wheel, whether the source still has it or not.
    for folder in (release.dist, direct, release.root / "build" / "lib"):
        shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "build", "--outdir", release.dist, "."], log, cwd=release.root)
    run([sys.executable, "-m", "build", "--wheel", "--outdir", direct, "."], log, cwd=release.root)
    differing = _contents(release.wheel).items() ^ _contents(_only(direct, "*.whl")).items()
    names = sorted({name for name, _ in differing if not name.endswith("/RECORD")})
    if names:
        raise Failed(f"the wheel from the sdist and the one from the repository differ in {', '.join(names[:5])}")
    return f"wheel {_megabytes(release.wheel):.1f} MB, sdist {_megabytes(release.sdist):.1f} MB"


def check_metadata(release: Release, log: TextIO) -> str:
    """Run `twine check` on both files, and compare their sizes with what PyPI takes."""
    files = [release.wheel, release.sdist]
    run([sys.executable, "-m", "twine", "check", "--strict", *files], log)
    for file in files:
        if _megabytes(file) > MOST_MEGABYTES:
            raise Failed(f"{file.name} has {_megabytes(file):.1f} MB, and PyPI takes {MOST_MEGABYTES}")
    return ", ".join(file.name for file in files)


def _contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {part.filename: part.CRC for part in archive.infolist()}


def _megabytes(file: Path) -> float:
    return file.stat().st_size / 1e6


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise Failed(f"{folder}: expected one {pattern}, found {len(found)}: build it with `python -m build`")
    return found[0]
