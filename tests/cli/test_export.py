"""`treepiece export`, and `evaluate` on what it writes."""

import json

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.cli.main import app
from treepiece.data.toy import toy_rows
from treepiece.errors import BundleError, OptionError

pytestmark = pytest.mark.slow

WEIGHTS = ("--no-float", "--no-int8", "--weights", "float")
"""A bundle of weights alone, which takes no tracing of graphs."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "rows.tsv"
    file.write_text("".join(f"{utterance}\t{parse}\n" for _, utterance, parse in toy_rows(30, seed=3)))
    return file


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_export_then_evaluate(tiny_bundle, data, tmp_path):
    model, output = tiny_bundle.parent / "model", tmp_path / "bundle"
    result = run(
        *("export", "--model", model, "--output", output, "--data", data, "--calibration", data),
        *("--no-int8", "--licence", "made up", "--json"),
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["parity"]["float"]["agreement"] == 1.0
    assert found["quality"]["float"]["rows"] == 30
    assert "made up" in (output / "README.md").read_text()
    scores = []
    for extra in (("--model", output), ("--model", output, "--precision", "float"), ("--model", model)):
        evaluated = run("evaluate", data, *extra, "--json")
        assert evaluated.exit_code == 0, evaluated.output
        scores.append(json.loads(evaluated.stdout))
    assert scores[0] == scores[1] == scores[2], "graphs and PyTorch score the same"
    again = run("export", "--model", model, "--output", output, "--data", data, "--no-int8")
    assert isinstance(again.exception, OptionError)
    assert "there is a bundle already" in str(again.exception)
    missing = run("evaluate", data, "--model", output, "--precision", "int8")
    assert isinstance(missing.exception, BundleError)
    assert "no graphs in int8" in str(missing.exception)


def test_export_without_data_says_what_is_missing(tiny_bundle, tmp_path):
    result = run("export", "--model", tiny_bundle.parent / "model", "--output", tmp_path / "bundle", *WEIGHTS)
    assert result.exit_code == 0, result.output
    assert "no --data" in result.stderr
    assert "200 of 200" in result.stdout
    assert "was not measured" in (tmp_path / "bundle" / "README.md").read_text()


def test_nothing_to_export(tiny_bundle, tmp_path):
    result = run("export", "--model", tiny_bundle.parent / "model", "--output", tmp_path, "--no-int8", "--no-float")
    assert isinstance(result.exception, OptionError)


def test_weights_alone_with_notes(tiny_bundle, data, tmp_path):
    model, output = tiny_bundle.parent / "model", tmp_path / "weights"
    (tmp_path / "notes.md").write_text("## Who made it\n\nEin Müller.\n", encoding="utf-8")
    result = run(
        *("export", "--model", model, "--output", output, *WEIGHTS),
        *("--notes", tmp_path / "notes.md", "--data", data),
    )
    assert result.exit_code == 0, result.output
    assert "30 of 30" in result.stdout
    assert f"treepiece train DATA --output DIR --init {output}" in result.stderr
    card = (output / "README.md").read_text(encoding="utf-8")
    assert "## Who made it\n\nEin Müller.\n\n## How it was made" in card
    assert "| weights-float | 30 | " in card
    parsed = run("parse", "--model", output, "call mom")
    assert "a trained model without graphs" in str(parsed.exception)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--weights", "int4"), "--weights must be one of none, float, half, got 'int4'"),
        (
            ("--notes", "missing.md"),
            "--notes missing.md: cannot be read: No such file or directory: give a Markdown file",
        ),
        (("--notes", "latin.md"), "--notes latin.md: cannot be read: it is not UTF-8: give a Markdown file"),
        (("--notes", "."), "--notes .: cannot be read: Is a directory: give a Markdown file"),
    ],
)
def test_wrong_options(tiny_bundle, tmp_path, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.md").write_bytes(b"M\xfcller")
    result = run("export", "--model", tiny_bundle.parent / "model", "--output", "out", *given)
    assert isinstance(result.exception, OptionError)
    assert str(result.exception) == message
    assert not (tmp_path / "out").exists()
