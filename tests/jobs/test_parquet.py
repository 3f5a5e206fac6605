"""Parquet files as input and as output."""

import datetime
import json
from decimal import Decimal

import pytest
from job_tools import Killed, die_after, run

from treepiece.data.toy import toy_rows
from treepiece.errors import DataError, OptionError
from treepiece.jobs.sources import open_source
from treepiece.runtime.parser import Parser

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'treepiece[parquet]'")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'treepiece[parquet]'")

TEXTS = [utterance for _, utterance, _ in toy_rows(25)]


@pytest.fixture(scope="module")
def parser(tiny_bundle):
    return Parser.load(tiny_bundle, threads=2)


@pytest.fixture
def table():
    texts = [*TEXTS[:23], None, " "]
    return pa.table(
        {
            "id": pa.array(range(25), pa.int32()),
            "text": pa.array(texts),
            "when": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5)] * 25, pa.timestamp("ms")),
            "price": pa.array([Decimal("1.50"), None] * 12 + [None], pa.decimal128(5, 2)),
            "raw": pa.array([b"\xff"] * 25),
            "deep": pa.array([{"a": [1, None], "b": float("nan")}] * 25),
            "kind": pa.array(["x", "y", None, "x", "y"] * 5).dictionary_encode(),
        },
        metadata={"from": "a test"},
    )


@pytest.fixture
def rows(table, tmp_path):
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=7)
    return tmp_path / "rows.parquet"


def test_types_are_kept(parser, rows, table, tmp_path):
    summary = run(parser, rows, tmp_path / "out.parquet")
    assert (summary.rows, summary.errors) == (25, 2)
    assert [example.partition(":")[0] for example in summary.examples] == ["row 24", "row 25"]
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.schema.names == [*table.schema.names, "tree", "confidence", "understood", "error"]
    assert found.select(table.schema.names).schema.equals(table.schema)
    assert found.schema.metadata[b"from"] == b"a test"
    assert repr(found.select(table.schema.names).to_pylist()) == repr(table.to_pylist())
    assert [str(kind) for kind in found.schema.types[-4:]] == ["string", "double", "bool", "string"]
    assert found["tree"].to_pylist() == [parser(text).tree for text in TEXTS[:23]] + [None, None]
    assert found["error"].to_pylist()[23] == "expected a text, got null"
    assert pq.ParquetFile(tmp_path / "out.parquet").num_row_groups == 1


def test_to_json(parser, rows, tmp_path):
    run(parser, rows, tmp_path / "out.jsonl")
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    first = {name: found[0][name] for name in ("id", "text", "when", "price", "raw", "deep", "kind")}
    assert first == {
        "id": 0,
        "text": TEXTS[0],
        "when": "2024-01-02T03:04:05",
        "price": "1.50",
        "raw": "/w==",
        "deep": {"a": [1, None], "b": None},
        "kind": "x",
    }
    run(parser, rows, tmp_path / "out.tsv")
    header, line, *_ = (tmp_path / "out.tsv").read_text().splitlines()
    assert dict(zip(header.split("\t"), line.split("\t"), strict=True))["deep"] == '{"a": [1, null], "b": null}'


def test_numbers_that_json_cannot_hold(parser, tmp_path):
    numbers = [float("nan"), float("inf"), float("-inf"), 0.5]
    table = pa.table({"text": TEXTS[:4], "n": numbers, "deep": [[{"n": number}] for number in numbers]})
    pq.write_table(table, tmp_path / "rows.parquet")
    run(parser, tmp_path / "rows.parquet", tmp_path / "out.jsonl")
    found = [json.loads(line, parse_constant=pytest.fail) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["n"], row["deep"]) for row in found] == [(None, [{"n": None}])] * 3 + [(0.5, [{"n": 0.5}])]
    run(parser, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    assert repr(pq.read_table(tmp_path / "out.parquet")["deep"].to_pylist()) == repr(table["deep"].to_pylist())


def test_from_json(parser, tmp_path):
    lines = [
        {"utterance": "a b", "whole": 1, "real": 1, "truth": True, "mixed": 1, "list": [1]},
        {"utterance": "a b", "whole": None, "real": 2.5, "truth": None, "mixed": "x", "late": "\ud800"},
        {"utterance": 3, "big": 1 << 70, "\udc00": 1},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines) + "bad\n")
    run(parser, tmp_path / "rows.jsonl", tmp_path / "out.parquet", part_rows=1)
    found = pq.read_table(tmp_path / "out.parquet")
    kinds = {field.name: str(field.type) for field in found.schema}
    assert kinds == {
        "utterance": "string",
        "whole": "int64",
        "real": "double",
        "truth": "bool",
        "mixed": "string",
        "list": "string",
        "late": "string",
        "big": "string",
        "?": "int64",
        "tree": "string",
        "confidence": "double",
        "understood": "bool",
        "error": "string",
    }
    rows = found.to_pylist()
    assert rows[0]["tree"] == rows[1]["tree"] == parser("a b").tree
    assert (rows[0]["mixed"], rows[1]["mixed"], rows[0]["list"], rows[1]["late"]) == ("1", "x", "[1]", "?")
    assert (rows[2]["utterance"], rows[2]["big"], rows[2]["tree"]) == ("3", str(1 << 70), None)
    assert "not JSON" in rows[3]["error"]


def test_predicted_columns_replace_those_of_the_input(parser, tmp_path):
    pq.write_table(pa.table({"tree": [1, 2], "text": TEXTS[:2], "more": [3, 4]}), tmp_path / "rows.parquet")
    run(parser, tmp_path / "rows.parquet", tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.schema.names == ["text", "more", "tree", "confidence", "understood", "error"]
    assert found["tree"].to_pylist() == [parser(text).tree for text in TEXTS[:2]]


def test_resume(parser, rows, tmp_path):
    run(parser, rows, tmp_path / "whole.parquet")
    with pytest.raises(Killed):
        run(parser, rows, tmp_path / "out.parquet", progress=die_after(10))
    run(parser, rows, tmp_path / "out.parquet", resume=True)
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_chunks_can_be_read_in_any_order(rows, size):
    source = open_source(rows)
    chunks = list(source.chunks(size))
    assert chunks[0].rows == min(size, 7)
    forth = [row["id"] for chunk in chunks for row in source.read(chunk).rows]
    back = [row["id"] for chunk in reversed(chunks) for row in reversed(source.read(chunk).rows)]
    again = [row["id"] for row in source.read(chunks[-1]).rows]
    assert forth == back[::-1] == list(range(25))
    assert again == forth[-len(again) :]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_kinds_of_text(tmp_path, kind):
    pq.write_table(pa.table({"text": pa.array(["a", None], kind)}), tmp_path / "rows.parquet")
    source = open_source(tmp_path / "rows.parquet")
    (records,) = (source.read(chunk) for chunk in source.chunks(9))
    assert records.texts[0] == "a"
    assert isinstance(records.texts[1], DataError)


def test_texts_that_are_not_utf8(parser, tmp_path):
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff\xfe"], pa.binary()).buffers())
    pq.write_table(pa.table({"text": bad, "other": bad}), tmp_path / "rows.parquet")
    for kind in ("jsonl", "parquet", "tsv"):
        assert run(parser, tmp_path / "rows.parquet", tmp_path / f"out.{kind}").errors == 1
    row = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[1])
    assert (row["other"], row["error"][:18]) == ("\ufffd\ufffd", "byte 1 is not UTF-")


def test_no_rows(parser, tmp_path):
    pq.write_table(pa.table({"text": pa.array([], pa.string()), "n": pa.array([], pa.int8())}), tmp_path / "r.parquet")
    assert run(parser, tmp_path / "r.parquet", tmp_path / "out.parquet").rows == 0
    assert pq.read_table(tmp_path / "out.parquet").schema.names[:3] == ["text", "n", "tree"]
    (tmp_path / "rows.txt").write_text("")
    run(parser, tmp_path / "rows.txt", tmp_path / "text.parquet")
    assert pq.read_table(tmp_path / "text.parquet").num_rows == 0


def test_files_that_are_refused(tmp_path, rows):
    with pytest.raises(OptionError, match="the column 'id' holds int32, expected texts"):
        open_source(rows, "id")
    with pytest.raises(OptionError, match="there is no column 'nowhere', found 'id', 'text'"):
        open_source(rows, "nowhere")
    (tmp_path / "bad.parquet").write_text("hello")
    with pytest.raises(DataError, match="bad.parquet: not a readable Parquet file"):
        open_source(tmp_path / "bad.parquet")
    with pytest.raises(DataError, match="no such file"):
        open_source(tmp_path / "nowhere.parquet")
    whole = rows.read_bytes()
    rows.write_bytes(whole[:4] + b"\xff" * 300 + whole[304:])
    source = open_source(rows)
    with pytest.raises(DataError, match="not a readable Parquet file|cannot be read"):
        source.read(next(source.chunks(100)))
