"""`treepiece check`, from the outside."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from treepiece.cli.main import app
from treepiece.errors import DataError, OptionError, TreepieceError

GOOD = "wake me at 8\t[IN:WAKE wake me [SL:TIME at 8 ] ]\n"


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text(f"{GOOD}wake me at 8\t[IN:WAKE wake me at [SL:TIME 8 ] ]\n", encoding="utf-8")
    return path


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(app, ["check", *map(str, arguments)], **options)
    if isinstance(result.exception, TreepieceError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_table_of_counts_and_the_examples(rows):
    out = run(rows, env={"COLUMNS": "200"})
    assert f"{rows}: 2 rows" in out
    assert "utterances with several parses" in out
    assert f"{rows}, line 2" in out
    assert "[IN:WAKE [SL:TIME at 8 ] ]" in out
    assert "[IN:WAKE [SL:TIME 8 ] ]" in out


def test_json_is_one_object(rows):
    value = json.loads(run(rows, "--eval", rows, "--json", "--min-rows", 1))
    assert (value["rows"], value["eval_rows"]) == (2, 2)
    assert value["counts"]["conflict"] == 2
    assert value["counts"]["leak"] == 2
    (finding, *_) = value["findings"]
    assert {"file", "line", "kind", "severity", "found", "expected", "advice", "utterance", "parses"} == set(finding)


def test_rows_that_cannot_be_read_are_errors(rows):
    rows.write_text(f"{GOOD}nothing\n{GOOD}")
    value = json.loads(run(rows, "--json", code=1))
    assert (value["rows"], value["counts"]["unreadable"], value["findings"][0]["line"]) == (2, 1, 2)
    assert "rows that cannot be read" in run(rows, code=1)


def test_an_html_report(rows, tmp_path):
    run(rows, "--html", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<svg" in page
    with pytest.raises(DataError, match=r"cannot be written"):
        run(rows, "--html", rows / "report.html")


def test_examples_limits_the_findings(rows):
    assert json.loads(run(rows, "--json", "--examples", 0))["findings"] == []


def test_standard_input():
    value = json.loads(run("-", "--json", input=GOOD))
    assert value["rows"] == 1
    assert value["findings"][0]["file"] == "standard input"
    with pytest.raises(OptionError, match="standard input already"):
        run("-", "--eval", "-")


def test_a_terminal_gets_no_control_characters(rows):
    rows.write_text("play \x1b[2Jit\t[IN:PLAY\x1b play [SL:IT \x1b[2Jit ] ]\n")
    out = run(rows)
    assert "play \ufffd[2Jit" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("option", [["--min-rows", "0"], ["--min-confidence", "1.5"], ["--examples", "-1"]])
def test_wrong_options(rows, option):
    with pytest.raises(OptionError, match=option[0].strip("-").replace("-", "_")):
        run(rows, *option)


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        run(tmp_path / "nothing.tsv")
    (tmp_path / "empty.tsv").write_text("")
    with pytest.raises(DataError, match="there are no rows"):
        run(tmp_path / "empty.tsv")


def test_help_teaches():
    out = run("--help", env={"COLUMNS": "200"})
    for words in ("Example", "exit code is 1", "trained on other rows"):
        assert words in out


def test_a_check_without_a_model_loads_no_pytorch(rows):
    code = (
        "import sys; from treepiece.cli.main import make_app; make_app('check')(['check', sys.argv[1]], "
        "standalone_mode=False); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(rows)], check=True, capture_output=True, timeout=300)
