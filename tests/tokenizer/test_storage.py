import errno
import json
import os

import pytest
from hypothesis import given
from strategies import corpora, trees

from treepiece import Node, TreePieceTokenizer, bundle
from treepiece.errors import TokenizerFileError
from treepiece.tokenizer import storage


@given(corpora(), trees(9))
def test_load_gives_what_was_saved(tmp_path_factory, corpus, tree):
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer = TreePieceTokenizer.train([*corpus.trees, *map(Node, "ABC")])
    tokenizer.save(folder)
    loaded = TreePieceTokenizer.load(folder)
    assert loaded.units == tokenizer.units
    assert loaded.report == tokenizer.report
    assert loaded.encode(tree) == tokenizer.encode(tree)
    assert loaded.score(tree) == tokenizer.score(tree)


@pytest.fixture
def folder(tmp_path):
    TreePieceTokenizer.train([Node("A", [Node("B")]), Node("\ud800"), Node("école")]).save(tmp_path)
    return tmp_path


def test_both_files_are_written(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["tokenizer.json", "units.txt"]
    assert "école" in (folder / "units.txt").read_text(encoding="utf-8")


def edit(folder, change):
    path = folder / "tokenizer.json"
    value = json.loads(path.read_text())
    change(value)
    body = {key: value.get(key) for key in ("labels", "units", "report")}
    value["sha256"] = storage._digest(body)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(version=2), "newer than this treepiece reads (1): upgrade treepiece"),
        (lambda v: v.update(version="1"), "damaged: 'version' is '1'"),
        (lambda v: v.update(format="other"), "not a tokenizer: 'format' is 'other'"),
        (lambda v: v.update(labels=["A"]), "'labels' must be distinct strings"),
        (lambda v: v.update(units=[]), "'units' must be a non-empty list of distinct units"),
        (lambda v: v.update(units=None), "unit 0 must be a number and the tokens of a tree"),
        (lambda v: v["units"].append([0.0, 0]), "must be a number and the tokens of a tree"),
        (lambda v: v["units"].append([0.0, 77, -1]), "must be a number and the tokens of a tree"),
        (lambda v: v["units"].append([float("nan"), 0, -1]), "must be a number and the tokens of a tree"),
        (lambda v: v["units"].append(v["units"][0]), "'units' must be a non-empty list of distinct units"),
        (lambda v: v.update(report={"merges": 1}), "'report' is not that of a training run"),
        (lambda v: v.update(report=5), "'report' is not that of a training run"),
        (lambda v: v.update(units=v["units"][:1]), "<continuation> must have a unit"),
        (lambda v: v["units"].append([0.0, len(v["labels"]) - 1, -1]), "at least two children in every unit"),
    ],
)
def test_files_with_wrong_contents(folder, change, message):
    edit(folder, change)
    with pytest.raises(TokenizerFileError) as caught:
        TreePieceTokenizer.load(folder)
    assert message in str(caught.value)


def test_every_flipped_byte_is_found(folder):
    path = folder / "tokenizer.json"
    data = path.read_bytes()
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(TokenizerFileError, match=r"tokenizer\.json"):
            TreePieceTokenizer.load(folder)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000])
def test_files_that_are_no_tokenizer(folder, data):
    (folder / "tokenizer.json").write_bytes(data)
    with pytest.raises(TokenizerFileError, match=r"damaged|not a tokenizer"):
        TreePieceTokenizer.load(folder)


def test_the_file_itself_may_be_given(folder):
    assert TreePieceTokenizer.load(folder / "tokenizer.json").units == TreePieceTokenizer.load(folder).units


def test_a_missing_file_says_what_to_give(tmp_path):
    with pytest.raises(TokenizerFileError, match="no such file: pass the folder that `treepiece tokenizer train"):
        TreePieceTokenizer.load(tmp_path / "nowhere")


@pytest.mark.parametrize(("call", "n_good"), [("fsync", 0), ("fsync", 1), ("replace", 0), ("replace", 1)])
def test_a_full_disk_leaves_the_old_file(folder, monkeypatch, call, n_good):
    before = (folder / "tokenizer.json").read_bytes()
    works = getattr(os, call)
    calls = []

    def full(*args):
        calls.append(args)
        if len(calls) <= n_good:
            return works(*args)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(bundle.os, call, full)
    with pytest.raises(TokenizerFileError, match="an existing tokenizer there is unchanged"):
        TreePieceTokenizer.train([Node("C")]).save(folder)
    assert (folder / "tokenizer.json").read_bytes() == before
    assert len(list(folder.iterdir())) == 2


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TokenizerFileError, match="cannot be written"):
        TreePieceTokenizer.train([Node("C")]).save(tmp_path / "file")
