"""Jobs from file to file, in one process."""

import json

import pytest
from job_tools import Watch, run

from treepiece.data.toy import toy_rows
from treepiece.errors import DataError, OptionError
from treepiece.jobs.job import Job
from treepiece.runtime.parser import Parser

TEXTS = [utterance for _, utterance, _ in toy_rows(30)]


@pytest.fixture(scope="module")
def parser(tiny_bundle):
    return Parser.load(tiny_bundle, threads=2)


@pytest.fixture
def rows(tmp_path):
    """A file of rows, two of them bad."""
    path = tmp_path / "rows.jsonl"
    values = [{"id": number, "utterance": text, "more": [number]} for number, text in enumerate(TEXTS)]
    values[3]["utterance"] = " "
    values[7]["utterance"] = "word " * 100
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
    return path


def read_json(path):
    assert path.read_bytes().isascii()
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def read_tsv(path):
    header, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def test_rows_keep_order_and_columns(parser, rows, tmp_path):
    output = tmp_path / "out.jsonl"
    summary = run(parser, rows, output)
    found = read_json(output)
    assert (summary.rows, summary.errors, summary.not_understood) == (30, 2, 0)
    assert [row["id"] for row in found] == list(range(30))
    assert list(found[0]) == ["id", "utterance", "more", "tree", "confidence", "understood", "error"]
    assert found[5]["more"] == [5]
    for row in found:
        if row["id"] in (3, 7):
            assert (row["tree"], row["confidence"], row["understood"]) == (None, None, False)
        else:
            result = parser(row["utterance"])
            assert (row["tree"], row["understood"], row["error"]) == (result.tree, True, None)
            assert row["confidence"] == pytest.approx(result.confidence, abs=1e-5)
    assert "has no readable characters" in found[3]["error"]
    assert "too long" in found[7]["error"]
    assert [example.partition(":")[0] for example in summary.examples] == ["line 4", "line 8"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "rows.jsonl"]


@pytest.mark.parametrize("precision", ["int8", "float"])
def test_predictions_do_not_depend_on_the_neighbours(tiny_bundle, tmp_path, precision):
    parser = Parser.load(tiny_bundle, precision=precision, threads=2)
    (tmp_path / "rows.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    (tmp_path / "back.txt").write_text("".join(f"{text}\n" for text in reversed(TEXTS)))
    for name, part_rows in (("rows", 1), ("rows", 100), ("back", 7)):
        run(parser, tmp_path / f"{name}.txt", tmp_path / f"{name}{part_rows}.jsonl", part_rows=part_rows)
    one = [row["tree"] for row in read_json(tmp_path / "rows1.jsonl")]
    assert one == [row["tree"] for row in read_json(tmp_path / "rows100.jsonl")]
    assert one == [row["tree"] for row in read_json(tmp_path / "back7.jsonl")][::-1]
    assert one == [parser(text).tree for text in TEXTS]


@pytest.mark.parametrize("precision", ["int8", "float"])
def test_the_same_job_gives_the_same_bytes(tiny_bundle, rows, tmp_path, precision):
    for name, threads in (("a", 2), ("b", 1)):
        run(Parser.load(tiny_bundle, precision=precision, threads=threads), rows, tmp_path / f"{name}.jsonl", nbest=3)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_nbest(parser, rows, tmp_path):
    run(parser, rows, tmp_path / "out.jsonl", nbest=3)
    found = read_json(tmp_path / "out.jsonl")
    assert found[0]["nbest"][0]["tree"] == found[0]["tree"]
    assert 1 < len(found[0]["nbest"]) <= 3
    assert "nbest" not in found[3]
    with pytest.raises(OptionError, match="only .jsonl can hold several candidates per row"):
        Job(rows, tmp_path / "out.tsv", nbest=3)
    with pytest.raises(OptionError, match="nbest must be a whole number, from 1 to 100"):
        run(parser, rows, tmp_path / "other.jsonl", nbest=101)


def test_what_is_not_understood(parser, rows, tmp_path):
    summary = run(parser, rows, tmp_path / "out.jsonl", min_confidence=1.0)
    assert (summary.errors, summary.not_understood) == (2, 28)
    row = read_json(tmp_path / "out.jsonl")[0]
    assert (row["tree"], row["understood"], row["error"]) == (None, False, None)
    assert 0 <= row["confidence"] < 1


def test_words_that_a_tree_cannot_hold_are_an_error(parser, rows, tmp_path, monkeypatch):
    monkeypatch.setattr("treepiece.runtime.result.Candidate.tree", None)
    summary = run(parser, rows, tmp_path / "out.jsonl")
    assert (summary.errors, summary.not_understood) == (30, 0)
    row = read_json(tmp_path / "out.jsonl")[0]
    assert (row["tree"], row["understood"]) == (None, True)
    assert "TOP text cannot hold these words" in row["error"]


def test_to_tabs(parser, rows, tmp_path):
    with rows.open("a") as file:
        file.write('{"utterance": "a\\tb\\nc \\ud800", "new": "x", "id": null}\nbad\n')
    run(parser, rows, tmp_path / "out.tsv")
    found = read_tsv(tmp_path / "out.tsv")
    assert list(found[0]) == ["id", "utterance", "more", "new", "tree", "confidence", "understood", "error"]
    assert len(found) == 32
    assert found[0] | {"tree": "", "confidence": ""} == {
        "id": "0",
        "utterance": TEXTS[0],
        "more": "[0]",
        "new": "",
        "tree": "",
        "confidence": "",
        "understood": "true",
        "error": "",
    }
    assert found[0]["tree"] == parser(TEXTS[0]).tree
    assert (found[3]["tree"], found[3]["confidence"], found[3]["understood"]) == ("", "", "false")
    assert (found[30]["utterance"], found[30]["id"], found[30]["new"]) == ("a b c ?", "", "x")
    assert "not JSON" in found[31]["error"]


def test_from_tabs_and_text(parser, tmp_path):
    (tmp_path / "rows.tsv").write_text("".join(f"{utterance}\t{parse}\r\n" for _, utterance, parse in toy_rows(9)))
    (tmp_path / "rows.txt").write_text("".join(f"{text}\n" for text in TEXTS[:9]))
    trees = {}
    for name in ("rows.tsv", "rows.txt"):
        for kind in ("jsonl", "tsv"):
            run(parser, tmp_path / name, tmp_path / f"{name}.{kind}")
            read = read_json if kind == "jsonl" else read_tsv
            found = read(tmp_path / f"{name}.{kind}")
            trees[name, kind] = [(row["utterance"], row["tree"]) for row in found]
    assert len(set(map(tuple, trees.values()))) == 1
    assert read_json(tmp_path / "rows.tsv.jsonl")[0]["parse"] == next(parse for _, _, parse in toy_rows(1))


def test_bad_lines_stop_nothing(parser, tmp_path):
    good = json.dumps({"utterance": "a\u2028b", "odd": "\ud800"}).encode()
    lines = [good, b"{bad", b"", b'{"utterance": "\xff"}', b'{"utterance": 3}', b'{"utterance": "\\ud800 hello"}', good]
    (tmp_path / "rows.jsonl").write_bytes(b"\r\n".join(lines))
    summary = run(parser, tmp_path / "rows.jsonl", tmp_path / "out.jsonl")
    found = read_json(tmp_path / "out.jsonl")
    assert [row["error"] is None for row in found] == [True, False, False, False, False, True, True]
    assert found[0] == found[6]
    assert (found[0]["utterance"], found[0]["odd"]) == ("a\u2028b", "\ud800")
    assert found[4]["utterance"] == 3
    assert (summary.rows, summary.errors, len(summary.examples)) == (7, 4, 4)


def refuse(name):
    raise ValueError(f"{name} is not JSON")


@pytest.mark.parametrize("kind", ["jsonl", "tsv"])
def test_numbers_that_json_cannot_hold_become_null(parser, tmp_path, kind):
    (tmp_path / "rows.jsonl").write_text(
        '{"text": "hello", "a": NaN, "b": [1, {"c": -Infinity}], "d": 1e999}\n{"text": NaN, "a": 0.5}\n'
    )
    summary = run(parser, tmp_path / "rows.jsonl", tmp_path / f"out.{kind}")
    assert summary.examples == ["line 2: expected a text in 'utterance' or 'text', got None"]
    if kind == "jsonl":
        lines = (tmp_path / "out.jsonl").read_text().splitlines()
        first, second = (json.loads(line, parse_constant=refuse) for line in lines)
        assert (first["a"], first["b"], first["d"], second["a"]) == (None, [1, {"c": None}], None, 0.5)
    else:
        first, second = read_tsv(tmp_path / "out.tsv")
        assert (first["a"], first["b"], first["d"], second["a"]) == ("", '[1, {"c": null}]', "", "0.5")


@pytest.mark.parametrize(("name", "text"), [("a.txt", ""), ("a.jsonl", ""), ("a.tsv", ""), ("a.tsv", "id\ttext\n")])
@pytest.mark.parametrize("kind", ["jsonl", "tsv"])
def test_no_rows(parser, tmp_path, name, text, kind):
    (tmp_path / name).write_text(text)
    assert run(parser, tmp_path / name, tmp_path / f"out.{kind}").rows == 0
    written = (tmp_path / f"out.{kind}").read_text()
    assert written == "" if kind == "jsonl" else written.endswith("tree\tconfidence\tunderstood\terror\n")


def test_predicted_columns_replace_those_of_the_input_with_a_message(parser, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"tree": 1, "text": "hello", "error": "x"}\n')
    messages = []
    run(parser, tmp_path / "rows.jsonl", tmp_path / "out.jsonl", progress=Watch(message=messages.append))
    (row,) = read_json(tmp_path / "out.jsonl")
    assert list(row) == ["text", "tree", "confidence", "understood", "error"]
    assert row["error"] is None
    assert "the prediction replaces the columns tree, error" in messages[0]


def test_progress(parser, rows, tmp_path):
    seen = []
    run(parser, rows, tmp_path / "out.jsonl", progress=Watch(rows=lambda *numbers: seen.append(numbers)))
    assert seen == [(min(done, 30), 30) for done in range(0, 33, 4)]


def test_an_output_that_exists(parser, rows, tmp_path):
    output = tmp_path / "out.jsonl"
    output.write_text("mine")
    for resume in (False, True):
        with pytest.raises(DataError, match="exists already: remove it, or give --overwrite"):
            run(parser, rows, output, resume=resume)
    assert output.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "rows.jsonl"]
    run(parser, rows, output, overwrite=True)
    assert len(read_json(output)) == 30


def test_outputs_that_cannot_be(parser, rows, tmp_path):
    with pytest.raises(OptionError, match="this is the input"):
        Job(rows, rows)
    with pytest.raises(OptionError, match="must end with .jsonl, .tsv, .parquet"):
        Job(rows, tmp_path / "out.txt")
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(DataError, match="not a file: name another output"):
        run(parser, rows, tmp_path / "folder.jsonl", overwrite=True)
    with pytest.raises(DataError, match="out.jsonl: cannot be written: No such file or directory"):
        run(parser, rows, tmp_path / "nowhere" / "out.jsonl")
    with pytest.raises(DataError, match="cannot be written: Not a directory"):
        run(parser, rows, rows / "out.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.jsonl", "rows.jsonl"]
