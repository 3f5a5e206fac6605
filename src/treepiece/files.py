"""Writing files so that an interruption never leaves half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def replace_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files so that each is either the old one or the new one; the last is replaced only after all others.

    Nothing is replaced before everything is on the disk, so a full disk costs no file that was there.
    """
    drafts: list[tuple[str, Path]] = []
    try:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            drafts.append((draft, path))
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for draft, path in drafts:
            os.chmod(draft, 0o644)  # mkstemp makes files that only their owner can read
            os.replace(draft, path)
    finally:
        for draft, _ in drafts:
            Path(draft).unlink(missing_ok=True)
