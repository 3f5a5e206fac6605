"""Downloads the official TOPv2 archive, checks it and unpacks it."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath

from treepiece.errors import DataError

TOPV2_URL = "https://dl.fbaipublicfiles.com/topv2/TOPv2_Dataset.zip"
TOPV2_SHA256 = "e73a13eb32f67f69c630abde549fa153f288564e2703b71492f04cb59b2cae13"

_CHUNK = 1 << 16
_TIMEOUT_SECONDS = 30.0
_LARGEST = 1 << 30  # the most bytes of the unpacked archive: many times those of TOPv2

OnBytes = Callable[[int, int | None], None]
"""Called with the number of bytes so far, and the total if the server reports it."""


def download_topv2(
    folder: Path, *, url: str = TOPV2_URL, sha256: str = TOPV2_SHA256, on_bytes: OnBytes | None = None
) -> list[Path]:
    """Return the files of TOPv2, fetched into `folder`.

    An interrupted download continues where it stopped; the archive is unpacked only if its checksum is right.
    """
    archive = folder / "topv2.zip.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _fetch(url, archive, on_bytes or (lambda done, total: None))
        _check(archive, url, sha256)
        files = _unpack(archive, folder)
        archive.unlink()
    except urllib.error.HTTPError as error:
        raise DataError(f"{url}: cannot be fetched: {error.code} {error.reason}") from None
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(f"{url}: cannot be fetched: {reason}; run the command again to continue") from None
    except OSError as error:
        raise DataError(f"{folder}: cannot be written: {error.strerror}") from None
    return files


def _fetch(url: str, archive: Path, on_bytes: OnBytes) -> None:
    done = archive.stat().st_size if archive.exists() else 0
    if not url.startswith(("https://", "http://")):
        raise DataError(f"{url}: expected an address that starts with https://")
    try:
        request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})  # noqa: S310
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:
            return  # no bytes are left: the download was complete, and the checksum will verify it
        raise
    except ValueError as error:
        raise DataError(f"{url}: not an address: {error}") from None
    with response:
        if response.status != 206:
            done = 0  # the server sends everything again
        _save(response, archive, done, on_bytes)


def _save(response: HTTPResponse, archive: Path, done: int, on_bytes: OnBytes) -> None:
    length = response.headers.get("Content-Length", "")
    total = done + int(length) if length.isdigit() else None
    with archive.open("ab" if done else "wb") as file:
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            done += len(chunk)
            on_bytes(done, total)
    if total is not None and done < total:
        raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")


def _check(archive: Path, url: str, sha256: str) -> None:
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        archive.unlink()
        raise DataError(f"{url}: the archive has sha256 {found}, expected {sha256}; it was deleted: try again")


def _unpack(archive: Path, folder: Path) -> list[Path]:
    """Return the files of the archive; each is put in place atomically."""
    try:
        with zipfile.ZipFile(archive) as contents, tempfile.TemporaryDirectory(dir=folder) as staging:
            members = [member for member in contents.infolist() if not member.is_dir()]
            _refuse_unsafe(members)
            shared = _shared_top([PurePosixPath(member.filename) for member in members])
            files = []
            for member in members:
                target = folder / PurePosixPath(member.filename).relative_to(shared)
                staged = contents.extract(member, staging)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(staged, target)
                files.append(target)
            return files
    except zipfile.BadZipFile as error:
        raise DataError(f"{archive}: not a zip archive: {error}") from None


def _refuse_unsafe(members: list[zipfile.ZipInfo]) -> None:
    for member in members:
        path = PurePosixPath(member.filename)
        if path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in member.filename:
            raise DataError(f"the archive holds the path {member.filename!r}, which leads out of the folder")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise DataError(f"the archive holds a link, {member.filename!r}: expected files only")
    if sum(member.file_size for member in members) > _LARGEST:
        raise DataError(f"the archive unpacks to more than {_LARGEST:,} bytes, far more than TOPv2 has")


def _shared_top(paths: list[PurePosixPath]) -> PurePosixPath:
    """Return the common folder of all paths, which is not repeated inside the output folder."""
    tops = {path.parts[0] for path in paths}
    is_shared = len(tops) == 1 and all(len(path.parts) > 1 for path in paths)
    return PurePosixPath(tops.pop() if is_shared else "")
