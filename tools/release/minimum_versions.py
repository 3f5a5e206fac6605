"""Runs the fast tests with the lowest version of every dependency that `pyproject.toml` allows.

    python -m tools.release.minimum_versions

PyTorch is the exception: the version that the project is developed with, which `--torch` names. Older ones come from
the index with gigabytes of CUDA.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from packaging.requirements import Requirement

from tools.release.build import Release, build
from tools.release.environments import find_python, make_environment, run_tests, unpack_without_source

EXTRAS = ("train", "parquet", "serve", "spacy", "bench")
"""The extras that are tested; `test`, `dev` and `docs` are tools, and Ray is tested by `make test`."""
PYTHON = "3.11"
"""The lowest version of Python."""


def pin(requirements: Iterable[str], torch: str) -> list[str]:
    """Return each requirement with its lower bound as the only version.

    >>> pin(["numpy>=1.26,<3", "uvloop>=0.21; sys_platform != 'win32'", "torch>=2.8"], torch="2.13.0")
    ['numpy==1.26', 'uvloop==0.21; sys_platform != "win32"', 'torch==2.13.0']
    """
    pinned = []
    for requirement in map(Requirement, requirements):
        lowest = [part.version for part in requirement.specifier if part.operator == ">="]
        if not lowest:
            raise ValueError(f"{requirement}: a dependency needs a lower bound (>=)")
        version = torch if requirement.name == "torch" else lowest[0]
        marker = f"; {requirement.marker}" if requirement.marker else ""
        pinned.append(f"{requirement.name}=={version}{marker}")
    return pinned


def read_requirements(project: Path) -> list[str]:
    """Return what a `pyproject.toml` asks for: the dependencies, and those of `EXTRAS`."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    return [*table["dependencies"], *(one for extra in EXTRAS for one in table["optional-dependencies"][extra])]


def check_minimum_versions(release: Release, log: TextIO) -> str:
    """Run the fast tests in an environment with the lowest versions; return pytest's last line."""
    constraints = release.folder / "minimum-versions.txt"
    constraints.write_text("\n".join(pin(read_requirements(release.root / "pyproject.toml"), release.torch)) + "\n")
    wanted = f"treepiece[{','.join(EXTRAS)},test] @ {release.wheel.as_uri()}"
    python = make_environment(
        release.folder / "minimum-versions",
        find_python(PYTHON),
        [[f"torch=={release.torch}"], ["--constraint", str(constraints), wanted]],
        log,
    )
    return run_tests(python, unpack_without_source(release.sdist, release.folder / "minimum-versions-tests"), log)


def main() -> None:
    """Build, and check the lowest versions alone."""
    parser = argparse.ArgumentParser(description="Run the fast tests with the lowest versions of all dependencies.")
    parser.add_argument("--torch", required=True, help="the version of PyTorch")
    release = Release(Path.cwd(), parser.parse_args().torch)
    release.folder.mkdir(parents=True, exist_ok=True)
    with (release.folder / "minimum-versions.log").open("w", encoding="utf-8") as log:
        build(release, log)
        sys.stdout.write(f"{check_minimum_versions(release, log)}\n")


if __name__ == "__main__":
    main()
