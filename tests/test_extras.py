"""The hint on a missing extra is a command that works for this installation, wherever it came from."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import treepiece
from treepiece.extras import command_for

PACKAGES = Path(treepiece.__file__).parents[1]
INDEX = None
CLONE = {"url": "file:///home/ada/my%20clone", "dir_info": {"editable": True}}
WHEEL = {"url": "file:///tmp/treepiece-0.1.0-py3-none-any.whl", "archive_info": {"hash": "sha256=00"}}
FOLDER = {"url": "file:///home/ada/treepiece", "dir_info": {}}


def installed_from(folder, origin):
    """The metadata that pip writes for a distribution from there."""
    written = folder / "treepiece-0.1.0.dist-info"
    written.mkdir()
    (written / "METADATA").write_text("Metadata-Version: 2.1\nName: treepiece\nVersion: 0.1.0\n")
    if origin is not None:
        (written / "direct_url.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{PACKAGES}"}


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        pytest.param(INDEX, "pip install 'treepiece[serve]'", id="index"),
        pytest.param(CLONE, "pip install -e '/home/ada/my clone[serve]'", id="clone"),
        pytest.param(WHEEL, f"pip install 'treepiece[serve] @ {WHEEL['url']}'", id="wheel"),
        pytest.param(FOLDER, f"pip install 'treepiece[serve] @ {FOLDER['url']}'", id="folder"),
        pytest.param("{", "pip install 'treepiece[serve]'", id="damaged"),
    ],
)
def test_the_command_line_names_the_command_for_this_installation(origin, command, tmp_path):
    code = "import sys; sys.modules['fastapi'] = None; from treepiece.cli.main import run; run()"
    result = subprocess.run(
        [sys.executable, "-c", code, "serve"],
        env=installed_from(tmp_path, origin),
        capture_output=True,
        text=True,
        check=False,
    )
    said, _, named = result.stderr.partition(", which is not installed: ")
    assert said in ("error: this `treepiece serve` needs fastapi", "error: this `treepiece serve` needs uvicorn")
    assert named == f"{command}\n"


@given(folder=st.lists(st.text(min_size=1), min_size=1).map(lambda names: Path("/", *names)), editable=st.booleans())
def test_a_shell_reads_one_requirement_that_names_the_folder(folder, editable):
    try:
        url = folder.as_uri()
    except UnicodeEncodeError:
        return  # no file has this name
    command = shlex.split(command_for("train", {"url": url, "dir_info": {"editable": editable}}))
    assert command == (
        ["pip", "install", "-e", f"{folder}[train]"] if editable else ["pip", "install", f"treepiece[train] @ {url}"]
    )
