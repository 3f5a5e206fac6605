"""Checks a release, and prints one line for each step.

python -m tools.release --torch 2.13.0
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TextIO

from tools.release.build import Release, build, check_metadata
from tools.release.environments import (
    Failed,
    Skipped,
    find_python,
    is_own,
    make_environment,
    run,
    run_tests,
    temporary_folder,
    unpack_without_source,
)
from tools.release.minimum_versions import check_minimum_versions

PYTHONS = ("3.11", "3.12", "3.13")
_Step = Callable[[Release, TextIO], str]


def lint(release: Release, log: TextIO) -> str:
    """Run the linters and the type checker."""
    for arguments in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        run([sys.executable, "-m", *arguments], log, cwd=release.root)
    return "ruff, mypy"


def check_wheel(release: Release, log: TextIO, version: str) -> str:
    """Install the wheel in a fresh environment and run the tests of the sdist, with the source gone."""
    extras, installs = "parquet,serve,spacy,test", []
    if is_own(version):
        extras, installs = f"train,{extras}", [[f"torch=={release.torch}"]]
    installs.append([f"treepiece[{extras}] @ {release.wheel.as_uri()}"])
    python = make_environment(release.folder / f"python-{version}", find_python(version), installs, log)
    root = unpack_without_source(release.sdist, release.folder / f"python-{version}-tests")
    tiny = release.folder / "tiny"
    if is_own(version):
        said = run_tests(python, root, log)
        shutil.rmtree(tiny, ignore_errors=True)
        shutil.copytree(temporary_folder(root) / "tiny_bundle", tiny)
        return said
    said = run_tests(python, root, log, **lent(tiny / "bundle"))
    return f"{said} (without PyTorch)"


def lent(bundle: Path) -> dict[str, str]:
    """Return the variable that gives tests without PyTorch a bundle that they cannot make themselves."""
    return {"TREEPIECE_TINY_BUNDLE": str(bundle)} if bundle.is_dir() else {}


def steps() -> Iterator[tuple[str, _Step]]:
    """Yield each step with its name, in order."""
    yield "lint", lint
    yield "build", build
    yield "twine check", check_metadata
    for version in PYTHONS:
        yield f"python {version}", partial(check_wheel, version=version)
    yield "minimum versions", check_minimum_versions


def check(release: Release, name: str, step: _Step) -> bool:
    """Run a step, print its line, and return whether the release may go on."""
    log_file = release.folder / f"{name.replace(' ', '-')}.log"
    start = time.monotonic()
    with log_file.open("w", encoding="utf-8") as log:
        try:
            verdict, said = "passed", step(release, log)
        except Skipped as reason:
            verdict, said = "skipped", str(reason)
        except Failed as reason:
            verdict, said = "FAILED", f"{reason}: see {log_file}"
    sys.stdout.write(f"{name:<18}{verdict:<9}{time.monotonic() - start:5.0f} s  {said}\n")
    sys.stdout.flush()
    return verdict != "FAILED"


def main() -> None:
    """Run all steps, or those that are named; exit with 1 where one fails."""
    names = [name for name, _ in steps()]
    parser = argparse.ArgumentParser(description="Check a release; run it in the repository's folder.")
    parser.add_argument("--torch", required=True, help="the version of PyTorch to install")
    parser.add_argument("only", nargs="*", metavar="STEP", help=f"of {', '.join(names)}; all by default")
    options = parser.parse_args()
    if unknown := set(options.only) - set(names):
        parser.error(f"there is no step {', '.join(sorted(unknown))}: give some of {', '.join(names)}")
    release = Release(Path.cwd(), options.torch)
    release.folder.mkdir(parents=True, exist_ok=True)
    passed = [check(release, name, step) for name, step in steps() if not options.only or name in options.only]
    sys.exit(not all(passed))


if __name__ == "__main__":
    main()
