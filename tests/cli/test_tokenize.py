import json
import subprocess
import sys

import pytest

from treepiece import TreePieceTokenizer
from treepiece.data.toy import toy_rows


def run(*arguments, stdin="", code=0):
    result = subprocess.run(
        [sys.executable, "-c", "from treepiece.cli.main import run; run()", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout if code == 0 else result.stderr


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "toy.tsv"
    path.write_text("".join(f"{utterance}\t{parse}\n" for _, utterance, parse in toy_rows(500)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer") / "new"
    summary = json.loads(run("tokenizer", "train", data, "--output", folder, "--merges", 50, "--json"))
    assert summary["trees"] == 500
    assert summary["merges"] == 50
    assert summary["base_units"] == summary["labels"] + 50
    return folder


def test_evaluate(folder, data):
    scores = json.loads(run("tokenizer", "evaluate", "--tokenizer", folder, data, "--json"))
    assert set(scores) == {
        "trees",
        "base_units",
        "units",
        "units_per_tree",
        "unencodable",
        "unencodable_seen_labels",
        "roundtrip_failures",
    }
    assert scores["trees"] == 500
    assert scores["unencodable"] == scores["unencodable_seen_labels"] == scores["roundtrip_failures"] == 0
    assert 1 <= scores["units_per_tree"] < 3
    table = run("tokenizer", "evaluate", "--tokenizer", folder, data)
    assert "units_per_tree" in table


def test_evaluate_counts_trees_with_unknown_labels(folder):
    stdin = "[IN:NEVER_SEEN ]\n[IN:NEVER_SEEN ]\n"
    scores = json.loads(run("tokenizer", "evaluate", "--tokenizer", folder, "-", "--json", stdin=stdin))
    assert scores["unencodable"] == 2
    assert scores["unencodable_seen_labels"] == 0
    assert scores["units_per_tree"] is None


def test_encode_and_decode_are_inverse(folder, data):
    lines = [
        json.loads(line) for line in run("tokenizer", "encode", "--tokenizer", folder, data, "--json").splitlines()
    ]
    assert len(lines) == 500
    assert [line["line"] for line in lines] == list(range(1, 501))
    written = "\n".join(json.dumps(line) for line in lines)
    trees = run("tokenizer", "decode", "--tokenizer", folder, "--json", stdin=written).splitlines()
    tokenizer = TreePieceTokenizer.load(folder)
    for line, tree in zip(lines, trees, strict=True):
        assert tokenizer.encode(tokenizer.decode(line["ids"])) == tuple(line["ids"])
        assert json.loads(tree)["text"].startswith("[IN:")
        assert [str(tokenizer.units[unit_id]) for unit_id in line["ids"]] == line["units"]


def test_encode_draws(folder, data):
    first = data.read_text(encoding="utf-8").splitlines()[0]
    drawing = run("tokenizer", "encode", "--tokenizer", folder, stdin=first)
    assert "ids: " in drawing
    refused = run("tokenizer", "encode", "--tokenizer", folder, stdin="[IN:NEVER ]")
    assert "cannot be encoded: label 'IN:NEVER' is not in the vocabulary" in refused


def test_decode_arguments_and_orders(folder):
    tokenizer = TreePieceTokenizer.load(folder)
    closed = tokenizer.units.n_placeholders.index(0)
    for order in ("pre", "level"):
        drawn = run("tokenizer", "decode", "--tokenizer", folder, closed, "--order", order)
        assert drawn.split()[0] == tokenizer.units[closed].tree.label


def test_show(folder):
    drawn = run("tokenizer", "show", "--tokenizer", folder, "--top", 3)
    assert drawn.count("unit ") == 3
    lines = [json.loads(line) for line in run("tokenizer", "show", "--tokenizer", folder, "--json").splitlines()]
    assert [line["id"] for line in lines] == list(range(20))
    assert lines[0]["probability"] >= lines[-1]["probability"] > 0


def test_same_seed_same_files(data, folder, tmp_path):
    run("tokenizer", "train", data, "--output", tmp_path, "--merges", 50)
    assert (tmp_path / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()


def test_all_options(tmp_path):
    stdin = "[A [B ] [C ] ]\n[A [B ] ]\n[A [B ] [C ] ]\n"
    for options in (["--em", "sampled", "--seed", 7], ["--em", "exact", "--expansion", "paper", "--theta", 0.3]):
        options += ["--em-iterations", 5, "--em-epsilon", 0.1, "--samples", 4, "--min-count", 1]
        run("tokenizer", "train", "-", "--output", tmp_path, *options, stdin=stdin)
        assert len(TreePieceTokenizer.load(tmp_path).units) > 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nowhere", "--output", "x"], "error: nowhere: no such file or folder"),
        (["train", "-", "--output", "x"], "error: -: no row in it can be read"),
        (["train", "-", "--output", "x", "--merges", "-1"], "error: merges must be a whole number, 0 or more, got -1"),
        (
            ["train", "-", "--output", "x", "--theta", "nan"],
            "error: theta must be a number from 0 to 1,000,000",
        ),
        (["train", "-", "--output", "x", "--em-epsilon", "-1"], "error: EM epsilon must be a finite number"),
        (["evaluate", "--tokenizer", "nowhere", "-"], "no such file: pass the folder"),
        (["decode", "--tokenizer", "FOLDER", "99999"], "error: unit id 99999 at index 0 is out of range"),
        (["decode", "--tokenizer", "FOLDER", *["0"] * 9], "error: units left over: the tree is complete after"),
        (["show", "--tokenizer", "FOLDER", "--top", "0"], "error: --top must be 1 or more, got 0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    arguments = [str(folder) if argument == "FOLDER" else argument for argument in arguments]
    error = run("tokenizer", *arguments, code=2)
    assert message in error
    assert len(error.splitlines()) == 1


def test_bad_rows_are_reported_and_skipped(tmp_path):
    stdin = "a\t[IN:X a ]\n" + "bad\n" * 7
    result = subprocess.run(
        [sys.executable, "-m", "treepiece", "tokenizer", "train", "-", "--output", str(tmp_path / "t")],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "skipped: standard input, line 2: expected two columns" in result.stderr
    assert "skipped: 2 more rows" in result.stderr
    assert "read 1 rows, skipped 7 (use --strict to stop at the first)" in result.stderr
    assert "stopped after 0 of 600 merges: no mergeable pair of units is left" in result.stderr
    error = run("tokenizer", "train", "-", "--output", tmp_path / "t", "--strict", stdin=stdin, code=2)
    assert error.startswith("error: standard input, line 2")


def test_ids_are_read_line_by_line(folder):
    closed = TreePieceTokenizer.load(folder).units.n_placeholders.index(0)
    trees = run("tokenizer", "decode", "--tokenizer", folder, "--json", stdin=f"{closed}\n\n{closed},\n")
    assert len(trees.splitlines()) == 2
    error = run("tokenizer", "decode", "--tokenizer", folder, stdin=f"{closed}\n99999\n", code=2)
    assert error.startswith("error: line 2: unit id 99999 at index 0 is out of range")
    error = run("tokenizer", "decode", "--tokenizer", folder, stdin="1_0\n", code=2)
    assert error.startswith("error: line 1: expected unit ids separated by blanks, got '1_0'")


@pytest.mark.parametrize("command", ["tokenizer train - --output x <&-", "data toy --rows 2 >&-"])
def test_closed_streams(tmp_path, command):
    program = f"{sys.executable} -m treepiece {command}"
    result = subprocess.run(program, shell=True, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert result.returncode in (0, 2)
    assert "Traceback" not in result.stderr


def test_names_that_look_like_markup(data, tmp_path):
    assert "[/a]" in run("tokenizer", "train", data, "--output", tmp_path / "[/a]").replace("\n", "")


def test_a_pipe_as_a_file(data, tmp_path):
    command = f"bash -c '{sys.executable} -m treepiece tokenizer train <(cat {data}) --output {tmp_path}/t'"
    subprocess.run(command, shell=True, check=True, timeout=300)


@pytest.mark.slow
def test_help_teaches():
    for command in ([], ["tokenizer"]):
        assert "Usage" in run(*command, "--help")
    for command in ("train", "encode", "decode", "show", "evaluate"):
        assert "Example" in run("tokenizer", command, "--help")
    assert run("--version").startswith("treepiece ")


def test_a_closed_pipe_is_no_error(folder, data):
    command = f"{sys.executable} -m treepiece tokenizer encode --tokenizer {folder} {data} | head -n 1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0
    assert result.stderr == ""
