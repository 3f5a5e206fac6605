"""`treepiece data`, from the outside."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from treepiece.cli.main import app
from treepiece.data.reader import read_rows
from treepiece.data.toy import toy_rows


def run(*arguments):
    result = CliRunner().invoke(app, ["data", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def on_a_terminal(*arguments):
    """Run a command whose standard output and error are one terminal; return what it shows."""
    ours, theirs = pty.openpty()
    program = [sys.executable, "-m", "treepiece", "data", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(program, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            block = os.read(ours, 1 << 16)
        except OSError:  # the other side is closed
            block = b""
        if not block:
            break
        shown += block
    assert process.wait(timeout=300) == 0
    os.close(ours)
    return shown.decode().splitlines()


EXPECTED = [f"{utterance}\t{parse}" for _, utterance, parse in toy_rows(20, seed=3)]


def test_a_pipe_and_a_file_get_all_rows(tmp_path):
    assert run("toy", "--rows", 20, "--seed", 3).splitlines() == EXPECTED
    assert run("toy", "--rows", 20, "--seed", 3, "--output", "-").splitlines() == EXPECTED
    run("toy", "--rows", 20, "--seed", 3, "--output", tmp_path / "toy.tsv")
    assert (tmp_path / "toy.tsv").read_text(encoding="utf-8").splitlines() == EXPECTED
    assert [path.name for path in tmp_path.iterdir()] == ["toy.tsv"]


def test_json_is_read_back_with_its_domain(tmp_path):
    run("toy", "--rows", 20, "--seed", 3, "--json", "--output", tmp_path / "toy.jsonl")
    rows = list(read_rows(tmp_path / "toy.jsonl"))
    assert [(row.domain, row.frame.utterance) for row in rows] == [few[:2] for few in toy_rows(20, seed=3)]
    assert json.loads(run("toy", "--rows", 1, "--json"))["parse"] == next(parse for _, _, parse in toy_rows(1))


def test_a_terminal_gets_a_few_rows_and_is_told_how_to_get_all():
    *rows, hint = on_a_terminal("toy", "--seed", 3)
    assert rows == EXPECTED[:10]
    assert hint == "the first 10 of 5,000 rows: to get all, use --output toy.tsv or a pipe"
    assert on_a_terminal("toy", "--rows", 10, "--seed", 3) == EXPECTED[:10]
    assert on_a_terminal("toy", "--rows", 20, "--seed", 3, "--output", "-") == EXPECTED


@pytest.mark.parametrize("command", ["toy", "topv2"])
def test_help_teaches(command):
    assert "Example" in run(command, "--help")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_standard_output():
    command = f"{sys.executable} -m treepiece data toy --rows 9 > /dev/full"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 2
    assert result.stderr == "error: standard output cannot be written: No space left on device\n"


RASA = """nlu:
- intent: book_flight
  examples: |
    - fly to [oslo](city)
    - fly to [oslo
    - from [nyc]{"entity": "city", "value": "new york"}
"""


def import_file(*arguments):
    """Run `treepiece data import` in a process of its own; return its exit code, and what it writes."""
    pytest.importorskip("yaml", reason="PyYAML is not installed: pip install 'treepiece[train]'")
    command = [sys.executable, "-m", "treepiece", "data", "import", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return ran.returncode, ran.stdout, ran.stderr.splitlines()


def test_import_writes_rows_and_says_what_it_leaves_out(tmp_path):
    source, output = tmp_path / "nlu.yml", tmp_path / "my.tsv"
    source.write_text(RASA)
    assert import_file(source, "--output", output) == (
        0,
        "",
        [
            f"skipped: {source}, line 5: col 8: '[' has no ']' before the next '[' or the end: expected [text](entity)",
            "read 2 rows, skipped 1 (use --strict to stop at the first)",
            "left out: 1 values of entities",
            f"{output}: 2 rows",
        ],
    )
    assert [row.frame.to_brackets() for row in read_rows(output)] == [
        "[IN:BOOK_FLIGHT [SL:CITY oslo ] ]",
        "[IN:BOOK_FLIGHT [SL:CITY nyc ] ]",
    ]
    assert run("import", source) == output.read_text()
    assert run("import", source, "--format", "rasa", "--output", "-") == output.read_text()


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (RASA, ["--strict"], ", line 5: col 8"),
        (RASA.replace("](", "]"), [], ": no row in it can be converted"),
        (RASA + "- {", [], ", line 7: not YAML"),
    ],
    ids=["strict", "no row", "not YAML"],
)
def test_a_failed_import_leaves_no_file(text, options, reason, tmp_path):
    source, output = tmp_path / "nlu.yml", tmp_path / "my.tsv"
    source.write_text(text.replace("[nyc]", "[nyc") if "no row" in reason else text)
    code, printed, said = import_file(source, "--output", output, *options)
    assert (code, printed, [path.name for path in tmp_path.iterdir()]) == (2, "", ["nlu.yml"])
    assert said[-1].startswith(f"error: {source}{reason}")
