"""Rows are read in chunks, and every line is a row, whatever is in it."""

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treepiece.errors import DataError, OptionError
from treepiece.jobs import sources
from treepiece.jobs.sources import open_source


def write(tmp_path, data, name):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def read(source, rows=2):
    """Return the texts and rows of all chunks."""
    found = [source.read(chunk) for chunk in source.chunks(rows)]
    return [text for one in found for text in one.texts], [row for one in found for row in one.rows]


@given(st.binary(max_size=60), st.integers(1, 5))
def test_chunks_have_all_lines(tmp_path_factory, data, rows):
    path = write(tmp_path_factory.getbasetemp(), data, "any.txt")
    source = open_source(path)
    chunks = list(source.chunks(rows))
    raw = data.split(b"\n")
    expected = raw if raw[-1] else raw[:-1]
    assert sum(chunk.rows for chunk in chunks) == len(expected)
    assert [chunk.first for chunk in chunks] == list(range(0, len(expected), rows))
    assert sum(chunk.size for chunk in chunks) == len(data)
    for number, (text, line) in enumerate(zip(read(source, rows)[0], expected, strict=True)):
        if isinstance(text, str):
            assert text == line.decode("utf-8-sig" if number == 0 else "utf-8").removesuffix("\r")
        else:
            assert "is not UTF-8" in str(text)


@given(st.lists(st.binary(min_size=1, max_size=9)))
def test_blocks_are_cut_into_lines_wherever_they_end(blocks):
    waiting = iter([*blocks, b""])
    found = [line for some in sources.split_lines(lambda: next(waiting)) for line in some]
    whole = b"".join(blocks).split(b"\n")
    assert found == (whole if whole[-1] else whole[:-1])


def test_a_line_without_end_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(sources, "MAX_TEXT_BYTES", 10)
    waiting = iter([b"x" * 8] * 1000 + [b"\nnext\n", b""])
    first, second = (line for some in sources.split_lines(lambda: next(waiting)) for line in some)
    assert len(first) <= 20
    assert second == b"next"


def test_chunks_have_few_bytes_and_long_lines_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 10)
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 20)
    source = open_source(write(tmp_path, "a\nb\n" + "c" * 12 + "\n" + "d" * 50 + "\ne\n", "rows.txt"))
    assert [chunk.rows for chunk in source.chunks(100)] == [2, 1, 1, 1]
    texts, _ = read(source, 100)
    assert [str(text)[:17] for text in texts] == ["a", "b", "c" * 12, "a line of 51 byte", "e"]
    assert isinstance(texts[3], DataError)


def test_plain_text(tmp_path):
    texts, rows = read(open_source(write(tmp_path, "\ufeffone\u2028two\u0085\x0b\r\n\r\nlast", "rows.TXT")))
    assert texts == ["one\u2028two\u0085\x0b", "", "last"]
    assert rows[0] == {"utterance": texts[0]}
    with pytest.raises(OptionError, match="is plain text"):
        open_source(tmp_path / "rows.TXT", "text")


def test_json(tmp_path):
    found = [
        '{"text": "a", "n": 1}',
        '{"utterance": "b", "text": "c"}',
        '{"utterance": "\\ud800"}',
        '{"n": 3}',
        '{"text": null}',
        "[1]",
        "{",
        "",
        '{"a":' * 5000,
        '{"n": ' + "9" * 5000 + "}",
        '{"text": "x", "n": ' + "[" * 300 + "]" * 300 + "}",
    ]
    texts, rows = read(open_source(write(tmp_path, "\r\n".join(found).encode() + b'\n{"text": "\xff"}', "rows.jsonl")))
    assert texts[:3] == ["a", "b", "\ud800"]
    assert rows[:2] == [{"text": "a", "n": 1}, {"utterance": "b", "text": "c"}]
    reasons = ["expected a text in 'utterance' or 'text', got None"] * 2
    reasons += [
        "expected a JSON object",
        "not JSON",
        "the line is blank",
        "not JSON",
        "not JSON",
        "nested more than 100 deep",
        "byte 11 is not UTF-8",
    ]
    for text, reason in zip(texts[3:], reasons, strict=True):
        assert isinstance(text, DataError)
        assert reason in str(text)
        assert len(str(text)) < 200
    assert rows[3] == {"n": 3}
    assert rows[5] == {}


def test_a_column_that_no_row_has_is_told_at_once(tmp_path):
    path = write(tmp_path, '{"a": "x"}\n{"b": 1}\n', "rows.jsonl")
    with pytest.raises(OptionError, match=r"rows.jsonl: there is no column 'utterance' or 'text', found 'a', 'b'"):
        open_source(path)
    with pytest.raises(OptionError, match="no column 'c'"):
        open_source(path, "c")
    with pytest.raises(OptionError, match="the column 'b' holds no texts"):
        open_source(path, "b")
    assert read(open_source(path, "a"))[0][0] == "x"
    assert read(open_source(write(tmp_path, "{\n[]\n", "bad.jsonl")))[1] == [{}, {}]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.txt", "rows.tsv"])
def test_no_rows(tmp_path, name):
    source = open_source(write(tmp_path, "", name))
    assert list(source.chunks(5)) == []
    assert list(source.names) == list(source.columns())


@pytest.mark.parametrize(
    ("text", "column", "names", "texts"),
    [
        ("domain\tutterance\tsemantic_parse\nx\ta b\t[IN:X a b ]\n", None, "domain utterance semantic_parse", ["a b"]),
        ("id\ttext\r\n1\ta\r\n2\tb\r\n", None, "id text", ["a", "b"]),
        ("\ufefftext\tutterance\na\tb\n", None, "text utterance", ["b"]),
        ("said\tutterance\na\tb\n", "said", "said utterance", ["a"]),
        ("a b\t[IN:X a b ]\n", None, "utterance parse", ["a b"]),
        ("a b\ta  b\t[IN:X a b ]\n", "tokenized_utterance", "utterance tokenized_utterance parse", ["a  b"]),
        ("utterance\na\n\n", None, "utterance", ["a", ""]),
    ],
    ids=["topv2", "CRLF", "BOM, both", "named", "no header", "TOP", "one column"],
)
def test_tabs(tmp_path, text, column, names, texts):
    source = open_source(write(tmp_path, text, "rows.tsv"), column)
    assert source.names == names.split()
    found, rows = read(source)
    assert found == texts
    assert list(rows[0]) == names.split()


def test_rows_with_other_columns_are_bad_rows(tmp_path):
    source = open_source(write(tmp_path, "id\ttext\n1\n2\tb\n3\tc\td\n", "rows.tsv"))
    texts, rows = read(source)
    assert "expected 2 columns (id, text), found 1" in str(texts[0])
    assert texts[1] == "b"
    assert "found 3" in str(texts[2])
    assert rows == [{"id": "1", "text": ""}, {"id": "2", "text": "b"}, {"id": "3", "text": "c"}]
    assert source.where(0) == "line 2"


@pytest.mark.parametrize(
    ("name", "text", "column", "message"),
    [
        ("rows.tsv", "a\tb\n1\t2\n", None, "line 1: there is no column 'utterance' or 'text', found 'a', 'b'"),
        ("rows.tsv", "text\ta\ta\n", None, "two columns are named 'a'"),
        ("rows.tsv", "text\ttree\n", "tree", "--column tree: the output has a column of this name"),
        ("rows.csv", "text\n", None, "must end with .txt, .jsonl, .tsv, .parquet"),
    ],
)
def test_files_that_are_refused(tmp_path, name, text, column, message):
    with pytest.raises((DataError, OptionError)) as caught:
        open_source(write(tmp_path, text, name), column)
    assert message in str(caught.value)


def test_what_is_no_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        open_source(tmp_path / "nowhere.txt")
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(DataError, match="expected a file"):
        open_source(tmp_path / "folder.txt")


def test_a_file_that_shrinks_is_noticed(tmp_path):
    path = write(tmp_path, "a\nb\n", "rows.txt")
    source = open_source(path)
    chunks = list(source.chunks(2))
    path.write_text("a\n")
    with pytest.raises(DataError, match="changed while it was read"):
        source.read(chunks[0])


NUMBERS = st.sampled_from(["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "0.5", "-3", "1e308"])
VALUES = st.recursive(
    NUMBERS | st.sampled_from(["null", "true", '"NaN"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda few: f"[{', '.join(few)}]")
        | st.lists(inner, max_size=3).map(
            lambda few: "{{{}}}".format(", ".join(f'"{number}": {one}' for number, one in enumerate(few)))
        )
    ),
    max_leaves=6,
)


def is_json(value):
    """Return whether a value is one of JSON, all the way down."""
    if isinstance(value, dict | list):
        return all(map(is_json, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_numbers_that_json_cannot_hold_are_read_as_null(tmp_path_factory, values):
    lines = [f'{{"text": "hello", "value": {value}, "id": 7}}\n' for value in values]
    texts, rows = read(open_source(write(tmp_path_factory.getbasetemp(), "".join(lines), "numbers.jsonl")))
    assert texts == ["hello"] * len(values)
    for row, value in zip(rows, values, strict=True):
        assert is_json(row)
        assert row["id"] == 7
        expected = re.sub(r'(?<!")(NaN|-?Infinity|-?1e999)', "null", value)
        assert row["value"] == json.loads(expected)
