import errno
import json
import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import frames, outcome_of, outcomes, top_trees, utterances

from treepiece.data.reader import read_rows
from treepiece.errors import DataError, FrameError
from treepiece.evaluation.outcomes import Outcome, full_tree, is_valid_frame, write_errors
from treepiece.evaluation.scores import score
from treepiece.trees.align import Span
from treepiece.trees.flat_json import tree_from_rows
from treepiece.trees.frame import Frame, leaf_labels
from treepiece.trees.node import Node, is_slot

some = st.lists(outcomes(), min_size=1, max_size=8)
EXACT = outcome_of("[IN:A x [SL:B y ] ]", "[IN:A x [SL:B y ] ]", passes=2, line=2)
SPANS = outcome_of("[IN:A x [SL:B y ] ]", "[IN:A [SL:B x y ] ]", "music", passes=3, line=3)
LABEL = outcome_of("[IN:A x [SL:B [IN:C [SL:D y ] ] ] ]", "[IN:A x [SL:E y ] ]", None, passes=4, line=4)


def test_frames_of_other_words_are_refused():
    with pytest.raises(FrameError, match=r"line 7: the predicted frame has the words \('y',\), the gold frame"):
        outcome_of("[IN:A x ]", "[IN:A y ]", line=7)


@given(top_trees)
def test_the_full_tree_gives_its_frame_back(tree):
    frame = Frame.from_tree(tree)
    if not (is_slot(tree.label) and len(frame.skeleton.children) == 0):
        assert Frame.from_tree(full_tree(frame)) == frame


@given(utterances.flatmap(frames))
def test_alternating_frames_are_valid_whatever_their_words(frame):
    assert is_valid_frame(frame)
    assert not is_valid_frame(replace(frame, skeleton=Node("SL:A", [frame.skeleton])))


@pytest.mark.parametrize(
    "skeleton",
    [
        Node("SL:A"),
        Node("A"),
        Node("IN:"),
        Node("IN:A B"),
        Node("IN:A]"),
        Node("IN:A", [Node("IN:B")]),
        Node("IN:A", [Node("B")]),
        Node("IN:A", [Node("SL:B", [Node("SL:C")])]),
        Node("IN:A", [Node("SL:B", [Node("C")])]),
        Node("IN:A", [Node("SL:")]),
    ],
)
def test_frames_that_top_text_cannot_say(skeleton):
    frame = Frame(("x",), skeleton, (Span(0, 1),) * len(leaf_labels(skeleton)), "x")
    assert not is_valid_frame(frame)
    assert score([Outcome(Frame.from_brackets("[IN:A x ]"), frame, None, 1)], None).invalid == 1


def test_misses_are_written_with_what_is_wrong(tmp_path):
    path = tmp_path / "new" / "errors.jsonl"
    bracket = Frame.from_tree(Node("IN:A", ["]", Node("SL:B", ["é"])]))
    unwritable = Outcome(bracket, replace(bracket, spans=(Span(0, 2),)), None, 1, 9)
    assert write_errors(path, [EXACT, SPANS, LABEL, unwritable]) == 3
    first, second, third = map(json.loads, path.read_text().splitlines())
    assert first == {
        "line": 3,
        "domain": "music",
        "utterance": "x y",
        "wrong": "spans",
        "gold": "[IN:A x [SL:B y ] ]",
        "predicted": "[IN:A [SL:B x y ] ]",
    }
    assert second["wrong"] == "skeleton"
    assert Frame.from_tree(tree_from_rows(third["predicted"])) == unwritable.predicted
    assert [entry.name for entry in path.parent.iterdir()] == ["errors.jsonl"]


@given(some)
def test_misses_are_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("errors") / "errors.jsonl"
    write_errors(path, rows)
    misses = [row for row in rows if not row.is_exact]
    for row, line in zip(misses, path.read_text().splitlines(), strict=True):
        for name in ("gold", "predicted"):
            tree = json.loads(line)[name]
            frame = Frame.from_brackets(tree) if isinstance(tree, str) else Frame.from_tree(tree_from_rows(tree))
            assert frame == getattr(row, name)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_misses(tmp_path, monkeypatch, call):
    path = tmp_path / "errors.jsonl"
    write_errors(path, [SPANS])
    before = path.read_bytes()

    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(DataError, match=r"errors\.jsonl: cannot be written: No space left"):
        write_errors(path, [LABEL])
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(DataError, match="cannot be written: Is a directory"):
        write_errors(tmp_path, [SPANS])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_frames_of_topv2_are_valid(topv2):
    rows = [row for row in read_rows(topv2, split="eval") if row.frame is not None]
    assert [row.line for row in rows if not is_valid_frame(row.frame)] == []
