import io
import json
from collections import Counter

import pytest

from treepiece.data.reader import find_files, read_rows, reread_rows, stream_rows
from treepiece.data.rows import ReadReport
from treepiece.errors import DataError
from treepiece.trees.node import Node

PARSE = "[IN:GET_WEATHER is it [SL:WEATHER_ATTRIBUTE raining ] ? ]"


def write(tmp_path, text, name="data.tsv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "utterance", "domain"),
    [
        (f"is it raining?\t{PARSE}\n", "is it raining?", None),
        (f"domain\tutterance\tsemantic_parse\nweather\tis it raining?\t{PARSE}\n", "is it raining?", "weather"),
        (f"domain\tutterance\tseqlogical\nweather\tis it raining?\t{PARSE}\n", "is it raining?", "weather"),
        (f"is it raining?\tis it raining ?\t{PARSE}\n", "is it raining?", None),
        (f"is it rαining?\tis it raining ?\t{PARSE}\n", "is it raining ?", None),
        (f"{PARSE}\n", "is it raining ?", None),
        (f"  {PARSE}\n", "is it raining ?", None),
        (f"\ufeffis it raining?\t{PARSE}\r\n\r\n", "is it raining?", None),
        (json.dumps({"utterance": "is it raining?", "parse": PARSE, "domain": "w"}), "is it raining?", "w"),
        (json.dumps({"parse": PARSE}), "is it raining ?", None),
    ],
    ids=[
        "pair",
        "topv2",
        "topv2, low-resource",
        "top",
        "top, raw text changed",
        "parse alone",
        "indented",
        "BOM, CRLF, no end",
        "json",
        "json parse",
    ],
)
def test_formats(tmp_path, text, utterance, domain):
    (row,) = read_rows(write(tmp_path, text))
    assert row.frame.utterance == utterance
    assert row.frame.leaves[0].text == "raining"
    assert row.domain == domain
    assert row.skeleton == row.frame.skeleton


def test_a_frame_in_json(tmp_path):
    (row,) = read_rows(write(tmp_path, f"is it raining?\t{PARSE}\n"))
    (again,) = read_rows(write(tmp_path, json.dumps(row.frame.to_json())))
    assert again == row


def test_trees_with_other_labels(tmp_path):
    tree = Node("Module", [Node("Expr")])
    (row,) = read_rows(write(tmp_path, "[Module [Expr ] ]\n"))
    assert row.skeleton == tree
    assert row.frame is None
    (row,) = read_rows(write(tmp_path, '{"tree": [{"label": "Module"}, {"label": "Expr", "parent": 0}]}'))
    assert row.skeleton == tree


BAD = [
    ("a\tb\tc\td\n", "line 1: expected one column, a tree or two columns"),
    ("hello there\n", "line 1: expected two columns, utterance and parse, found one column: put a tab"),
    (f"is it raining?\t{PARSE}\nonly one\n", "line 2: expected two columns, utterance and parse, found 1 column"),
    ("domain\tutterance\tsemantic_parse\nx\ty\n", "line 2: expected three columns, domain, utterance and parse"),
    ("a\t[IN:X b ]\n", "line 1: character 1 of the utterance: the parse has 'b' where the utterance has 'a'"),
    ("a b\t[IN:X a ]\n", "line 1: character 3 of the utterance: 'b' is not in the parse"),
    ("a\t[IN:X a\n", "line 1: parse, col 8: the text ends but [IN:X of col 1 is still open"),
    ("[A word ]\n", "line 1: a tree that is not a parse in IN: and SL: labels must not hold words"),
    (b"a\t[IN:X a ]\n\xff\n", "line 2: byte 1 is not UTF-8, got b'\\xff\\n': save the file as UTF-8"),
    ("{\n", "line 1: not JSON"),
    ('{"a": 1}\n', "found the keys 'a'"),
    ('{"parse": "[IN:X a ]"}\n[1]\n', "line 2: expected a JSON object"),
    ('{"parse": "[IN:X a ]", "domain": 3}\n', "'domain' must be a text, got 3"),
    ('{"tree": []}\n', "a non-empty list of nodes"),
    ("{" + '"a":{' * 5000 + "\n", "line 1: not JSON"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_bad_row_is_counted_or_raises(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        list(read_rows(path))
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    report = ReadReport()
    rows = list(read_rows(path, report=report))
    assert len(rows) == report.n_rows
    assert message in str(report.bad_rows[0])


def test_good_rows_survive_bad_ones(tmp_path):
    good = f"is it raining?\t{PARSE}\n"
    report = ReadReport()
    rows = list(read_rows(write(tmp_path, good + "bad\n" + good + "worse\t[IN:\n"), report=report))
    assert len(rows) == 2
    assert [bad.line for bad in report.bad_rows] == [2, 4]


@pytest.mark.parametrize("header", ["utterance\tparse", "text\tSemantic_Parse", "raw\ttokenized\tparse"])
def test_headers_are_no_rows(tmp_path, header):
    columns = ["is it raining?", "is it raining ?"][: header.count("\t")]
    report = ReadReport()
    (row,) = read_rows(write(tmp_path, header + "\n" + "\t".join([*columns, PARSE]) + "\n"), report=report)
    assert row.frame.utterance == "is it raining?"
    assert not report.bad_rows


def test_a_first_row_that_is_bad_does_not_decide_the_format(tmp_path):
    text = f"is\tit\training?\t{PARSE}\nis it raining?\t{PARSE}\n{{smile}}\t[IN:X {{smile}} ]\n"
    report = ReadReport()
    assert len(list(read_rows(write(tmp_path, text), report=report))) == 2
    assert len(list(read_rows(write(tmp_path, "{smile}\t[IN:X {smile} ]\n")))) == 1


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(f"is it raining?\t{PARSE}\n".encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert len(list(read_rows("-"))) == 1


def test_folders(tmp_path):
    for name in ("alarm_train", "alarm_eval", "music_eval"):
        write(tmp_path, f"domain\tutterance\tsemantic_parse\n{name}\tis it raining?\t{PARSE}\n", f"{name}.tsv")
    assert [row.domain for row in read_rows(tmp_path, split="eval")] == ["alarm_eval", "music_eval"]
    with pytest.raises(DataError, match=r"no files named DOMAIN_test.tsv; its splits are eval, train"):
        find_files(tmp_path, "test")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="it has no such files at all"):
        find_files(tmp_path / "empty", "train")
    with pytest.raises(DataError, match="no such file or folder"):
        find_files(tmp_path / "nowhere")
    with pytest.raises(DataError, match="a split is named with letters"):
        find_files(tmp_path, "**")
    with pytest.raises(DataError, match="cannot be read"):
        find_files(tmp_path / ("x" * 5000))


def test_topv2_is_read_whole(topv2):
    """Its size, and the slots that decoupled form does not keep apart."""
    labels = set()
    for split, n_rows, n_mixed, n_empty in (("train", 124_597, 3, 16), ("eval", 17_160, None, None)):
        report = ReadReport()
        rows = list(read_rows(topv2, split=split, report=report))
        skeletons = Counter(row.skeleton for row in rows)
        assert report.n_rows == skeletons.total() == n_rows
        assert not report.bad_rows
        if split == "train":
            assert sum(row.frame.n_mixed for row in rows) == n_mixed
            assert sum(span.start == span.end for row in rows for span in row.frame.spans) == n_empty
            assert len(skeletons) == 7_096
            labels = {node.label for tree in skeletons for node in tree.nodes()}
    assert len(labels) == 162


def test_rows_of_a_folder_have_the_domain_of_their_file_unless_they_name_one(tmp_path):
    (tmp_path / "garden_train.tsv").write_text("water it\t[IN:WATER water it ]\n")
    (tmp_path / "house_train.tsv").write_text(
        "domain\tutterance\tsemantic_parse\nkitchen\tcook it\t[IN:COOK cook it ]\n"
    )
    assert [row.domain for row in read_rows(tmp_path)] == ["garden", "kitchen"]
    assert [row.domain for row in read_rows(tmp_path / "garden_train.tsv")] == [None]


def test_all_low_resource_files_of_topv2_are_read(topv2):
    files = sorted((topv2 / "low_resource_splits").glob("*.tsv"))
    assert len(files) == 28
    for file in files:
        n_lines = len(file.read_text(encoding="utf-8").splitlines())
        assert len(list(read_rows(file))) == n_lines - 1, file.name


def test_rows_of_any_source_have_a_file_and_a_line(tmp_path):
    path = write(tmp_path, f"is it raining?\t{PARSE}\n\nis it raining?\t{PARSE}\n")
    assert [(file, row.line) for file, row in stream_rows(path)] == [(str(path), 1), (str(path), 3)]
    report = ReadReport()
    found = list(stream_rows(iter([("is it raining?", PARSE), ("rain", PARSE), *read_rows(path)]), report=report))
    assert [(file, row.line) for file, row in found] == [("the data", 1), ("the data", 3), ("the data", 4)]
    assert [(bad.file, bad.line) for bad in report.bad_rows] == [("the data", 2)]
    with pytest.raises(DataError, match="row 1: expected an utterance and its parse"):
        list(stream_rows([3]))


@pytest.mark.parametrize("header", ["", "domain\tutterance\tsemantic_parse\n", "\n", "no row\n"])
def test_some_rows_are_read_again(tmp_path, header):
    domain = "weather\t" if "domain" in header else ""
    lines = [f"{domain}is it raining {n}\t[IN:A is it raining {n} ]\n" for n in range(9)]
    path = write(tmp_path, header + "".join(lines))
    rows = {row.line: row for row in read_rows(path, report=ReadReport())}
    for lines in ({3, 7}, {max(rows)}, set()):
        assert reread_rows(path, lines) == {line: rows[line] for line in lines}
    with pytest.raises(DataError, match="cannot be read"):
        reread_rows(tmp_path / "nothing", {1})
