"""Reports a missing extra, with the command that installs it.

`pip` records where a distribution came from in `direct_url.json` (PEP 610). The command names the same source again, so
that it works for a clone and for a wheel file too, not only for an installation from a package index.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from treepiece.errors import OptionError

_NAME = "treepiece"


@contextmanager
def needs_extra(command: str, extra: str) -> Iterator[None]:
    """Turn a failed import inside the block into an error that says how to install the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise OptionError(
            f"this `treepiece {command}` needs {error.name}, which is not installed: {install_command(extra)}"
        ) from None


def needs_training(command: str) -> AbstractContextManager[None]:
    """Return `needs_extra` for a command that trains or loads PyTorch models."""
    return needs_extra(command, "train")


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation of treepiece."""
    return command_for(extra, _read_origin())


def command_for(extra: str, origin: Mapping[str, Any] | None) -> str:
    """Return the command that installs an extra from where a distribution came from.

    `origin` is the content of `direct_url.json`, None for a package index.

    >>> command_for("train", None)
    "pip install 'treepiece[train]'"
    >>> command_for("train", {"url": "file:///home/ada/treepiece", "dir_info": {"editable": True}})
    "pip install -e '/home/ada/treepiece[train]'"
    >>> command_for("train", {"url": "file:///tmp/treepiece-0.1.0-py3-none-any.whl", "archive_info": {}})
    "pip install 'treepiece[train] @ file:///tmp/treepiece-0.1.0-py3-none-any.whl'"
    >>> command_for("train", {"url": "https://host/treepiece", "vcs_info": {"vcs": "git", "commit_id": "1f2e"}})
    "pip install 'treepiece[train] @ git+https://host/treepiece@1f2e'"
    """
    # Imported here, as below: only an error needs them, and importing them takes 30 ms.
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    wanted = f"{_NAME}[{extra}]"
    if origin is None:
        return f"pip install {shlex.quote(wanted)}"
    url = str(origin["url"])
    if origin.get("dir_info", {}).get("editable"):
        return f"pip install -e {shlex.quote(f'{url2pathname(urlsplit(url).path)}[{extra}]')}"
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return f"pip install {shlex.quote(f'{wanted} @ {url}')}"


def _read_origin() -> Mapping[str, Any] | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        recorded = distribution(_NAME).read_text("direct_url.json")
        return None if recorded is None else dict(json.loads(recorded))
    except (PackageNotFoundError, ValueError):
        return None
