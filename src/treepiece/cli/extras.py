"""Commands that need more than the basic installation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from treepiece.errors import OptionError


@contextmanager
def needs_training(command: str) -> Iterator[None]:
    """Say how to install what a command needs, where importing it fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise OptionError(
            f"`treepiece {command}` needs {error.name}, which is not installed: pip install 'treepiece[train]'"
        ) from None


@contextmanager
def needs_extra(command: str, extra: str) -> Iterator[None]:
    """Say which extra to install, where importing what an option of a command needs fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise OptionError(
            f"this `treepiece {command}` needs {error.name}, which is not installed: pip install 'treepiece[{extra}]'"
        ) from None
