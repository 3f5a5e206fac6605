"""The commands in the README do what it says they do; its Python blocks run as doctests (see pyproject.toml)."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def commands(text):
    """Yield each command of the console blocks with the output that is shown below it."""
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def run(command, folder):
    program = command.replace("treepiece ", f"{sys.executable} -m treepiece ")
    result = subprocess.run(
        program, shell=True, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False
    )
    assert result.returncode == 0, (command, result.stderr)
    return result.stdout


def test_the_commands_of_the_readme(tmp_path):
    found = list(commands((ROOT / "README.md").read_text(encoding="utf-8")))
    assert len(found) >= 5
    for command, output in found:
        printed = run(command, tmp_path)
        if output:
            assert printed == output, command


def test_the_tutorial_of_training(tmp_path):
    """From an empty folder to a parser, with fewer rows and epochs than a person would use."""
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    for command, _ in commands(text):
        shorter = re.sub(r"--rows \d+", "--rows 150", command)
        run(f"{shorter} --epochs 1" if "treepiece train" in shorter else shorter, tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "parse.py").write_text(block)
    assert run(f"{sys.executable} parse.py", tmp_path).startswith("[IN:")


def test_the_page_on_running(tiny_bundle, tmp_path):
    """The Python block runs as it is, and so do the commands that parse."""
    shutil.copytree(tiny_bundle, tmp_path / "bundle")
    text = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "parse.py").write_text(block)
    assert run(f"{sys.executable} parse.py", tmp_path).startswith("[IN:")
    (tmp_path / "utterances.txt").write_text("call mom\nwake me at 8 am\n")
    (tmp_path / "rows.jsonl").write_text('{"text": "call mom", "id": 7}\n')
    shell = [line for part in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL) for line in part.splitlines()]
    commands = [line for line in shell if "treepiece parse" in line and "ray" not in line]
    assert len(commands) == 6
    for command in commands:
        if "parquet" in command:
            pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'treepiece[parquet]'")
        if "--resume" in command:
            continue  # there is nothing to go on with
        run(command, tmp_path)
    assert '"id": 7' in (tmp_path / "parsed.jsonl").read_text()
