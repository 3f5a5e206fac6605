"""The commands in the README do what it says they do; its Python blocks run as doctests (see pyproject.toml)."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commands(text):
    """Yield each command of the console blocks with the output that is shown below it."""
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def test_the_commands_of_the_readme(tmp_path):
    found = list(commands((ROOT / "README.md").read_text(encoding="utf-8")))
    assert len(found) >= 5
    for command, output in found:
        program = command.replace("treepiece ", f"{sys.executable} -m treepiece ")
        result = subprocess.run(
            program,
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, (command, result.stderr)
        if output:
            assert result.stdout == output, command
