"""Rows are read in pieces, and every line is a row, whatever is in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treepiece.errors import DataError, OptionError
from treepiece.jobs import lines, sources
from treepiece.jobs.columns import Kind, as_kind, as_text, join_kinds, kind_of, survey
from treepiece.jobs.sources import open_source


def write(tmp_path, data, name):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def read(source, rows=2):
    """Return the texts and rows of all pieces."""
    found = [source.read(piece) for piece in source.cut(rows)]
    return [text for one in found for text in one.texts], [row for one in found for row in one.rows]


@given(st.binary(max_size=60), st.integers(1, 5))
def test_pieces_have_all_lines(tmp_path_factory, data, rows):
    path = write(tmp_path_factory.getbasetemp(), data, "any.txt")
    source = open_source(path)
    pieces = list(source.cut(rows))
    raw = data.split(b"\n")
    expected = raw if raw[-1] else raw[:-1]
    assert sum(piece.rows for piece in pieces) == len(expected)
    assert [piece.first for piece in pieces] == list(range(0, len(expected), rows))
    assert sum(piece.size for piece in pieces) == len(data)
    for number, (text, line) in enumerate(zip(read(source, rows)[0], expected, strict=True)):
        if isinstance(text, str):
            assert text == line.decode("utf-8-sig" if number == 0 else "utf-8").removesuffix("\r")
        else:
            assert "is not UTF-8" in str(text)


@given(st.lists(st.binary(min_size=1, max_size=9)))
def test_blocks_are_cut_into_lines_wherever_they_end(blocks):
    waiting = iter([*blocks, b""])
    found = [line for some in lines.split_lines(lambda: next(waiting)) for line in some]
    whole = b"".join(blocks).split(b"\n")
    assert found == (whole if whole[-1] else whole[:-1])


def test_a_line_without_end_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_TEXT", 10)
    waiting = iter([b"x" * 8] * 1000 + [b"\nnext\n", b""])
    first, second = (line for some in lines.split_lines(lambda: next(waiting)) for line in some)
    assert len(first) <= 20
    assert second == b"next"


def test_pieces_have_few_bytes_and_long_lines_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MOST_BYTES", 10)
    monkeypatch.setattr(sources, "LONGEST_LINE", 20)
    source = open_source(write(tmp_path, "a\nb\n" + "c" * 12 + "\n" + "d" * 50 + "\ne\n", "rows.txt"))
    assert [piece.rows for piece in source.cut(100)] == [2, 1, 1, 1]
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
    assert list(source.cut(5)) == []
    assert source.first_columns() == list(source.columns())


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
    assert source.first_columns() == names.split()
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
        ("rows.tsv", "text\ttree\n", "tree", "--column tree: the answer has a column of this name"),
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
    pieces = list(source.cut(2))
    path.write_text("a\n")
    with pytest.raises(DataError, match="changed while it was read"):
        source.read(pieces[0])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(JSON, JSON)
def test_kinds_join_like_sets(one, other):
    kinds = kind_of(one), kind_of(other)
    assert join_kinds(*kinds) == join_kinds(*reversed(kinds))
    assert join_kinds(join_kinds(*kinds), kinds[0]) == join_kinds(*kinds)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), JSON)))
def test_a_column_holds_its_values(rows):
    types = {Kind.BOOL: bool, Kind.INT: int, Kind.FLOAT: float, Kind.TEXT: str, Kind.JSON: str}
    for name, kind in survey(rows).items():
        for row in rows:
            value = as_kind(row.get(name), kind)
            assert value is None or type(value) is types[kind]
            if isinstance(value, str):
                value.encode()


def test_cells():
    assert [as_text(value) for value in (None, "a", False, 1, 1.5, {"b": None})] == [
        None,
        "a",
        "false",
        "1",
        "1.5",
        json.dumps({"b": None}),
    ]
