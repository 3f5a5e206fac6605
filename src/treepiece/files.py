"""Writing files so that an interruption never leaves half of one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def replace_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files so that each is either the old one or the new one; the last is replaced only after all others.

    Nothing is replaced before everything is on the disk, so a full disk costs no file that was there.
    """
    # Drafts have fixed names: what a kill leaves behind is overwritten the next time.
    drafts = {folder / name: (folder / name).with_name(f".{Path(name).name}.draft") for name in files}
    try:
        for (path, draft), data in zip(drafts.items(), files.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for path, draft in drafts.items():
            os.replace(draft, path)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
