import errno
import json
import os
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_brackets import top_trees

from treepiece.data.reader import read_rows
from treepiece.errors import DataError, FrameError
from treepiece.evaluation.confusions import find_confusions, label_errors
from treepiece.evaluation.outcomes import Outcome, full_tree, is_valid_frame
from treepiece.evaluation.report import write_errors
from treepiece.evaluation.scores import Part, score
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame, leaf_labels
from treepiece.trees.labels import is_slot
from treepiece.trees.node import Node
from treepiece.trees.rows import tree_from_rows

slots = st.sampled_from(["SL:A", "SL:B"])
intents = st.sampled_from(["IN:A", "IN:B"])
skeletons = st.recursive(
    st.builds(Node, intents),
    lambda inner: st.builds(Node, intents, st.lists(st.builds(Node, slots, st.lists(inner, max_size=2)), max_size=3)),
    max_leaves=4,
)
# Some of these words cannot stand in bracket text.
utterances = st.lists(st.sampled_from(["x", "y", "]", "[IN:A", "a b", "\ud800"]), max_size=5)


@st.composite
def frames(draw, words):
    skeleton = draw(skeletons)
    n_leaves = len(leaf_labels(skeleton))
    places = sorted(draw(st.lists(st.integers(0, len(words)), min_size=2 * n_leaves, max_size=2 * n_leaves)))
    spans = tuple(Span(*places[leaf : leaf + 2]) for leaf in range(0, 2 * n_leaves, 2))
    return Frame(tuple(words), skeleton, spans, " ".join(words))


@st.composite
def outcomes(draw):
    words = draw(utterances)
    gold = draw(frames(words))
    predicted = draw(st.one_of(st.just(gold), frames(words)))
    domain = draw(st.sampled_from(["alarm", "music", None]))
    return Outcome(gold, predicted, domain, draw(st.integers(1, 9)), draw(st.integers(1, 99)))


some = st.lists(outcomes(), min_size=1, max_size=8)


@given(some)
def test_gold_is_right_about_itself(rows):
    scores = score([replace(row, predicted=row.gold) for row in rows], seen=[row.gold.skeleton for row in rows])
    assert (scores.em, scores.em_s, scores.invalid, scores.confusions) == (1, 1, 0, ())
    assert scores.by_seen == {"seen": Part(len(rows), 1.0, 1.0)}


@given(some)
def test_groups_add_up_to_the_whole(rows):
    scores = score(rows, seen={rows[0].gold.skeleton})
    assert scores.invalid == 0
    assert scores.em <= scores.em_s
    assert scores.em_low <= scores.em <= scores.em_high
    assert scores.em_s_low <= scores.em_s <= scores.em_s_high
    assert sum(part.rows for part in scores.by_domain.values()) == sum(row.domain is not None for row in rows)
    for parts in (scores.by_depth, scores.by_seen):
        assert sum(part.rows for part in parts.values()) == scores.rows == len(rows)
        assert sum(part.rows * part.em for part in parts.values()) == pytest.approx(scores.em * scores.rows)
        assert sum(part.rows * part.em_s for part in parts.values()) == pytest.approx(scores.em_s * scores.rows)


def outcome(gold, predicted, domain="alarm", passes=1, line=0):
    return Outcome(Frame.from_brackets(gold), Frame.from_brackets(predicted), domain, passes, line)


EXACT = outcome("[IN:A x [SL:B y ] ]", "[IN:A x [SL:B y ] ]", passes=2, line=2)
SPANS = outcome("[IN:A x [SL:B y ] ]", "[IN:A [SL:B x y ] ]", "music", passes=3, line=3)
LABEL = outcome("[IN:A x [SL:B [IN:C [SL:D y ] ] ] ]", "[IN:A x [SL:E y ] ]", None, passes=4, line=4)
INVALID = outcome("[IN:A x y ]", "[SL:A x y ]", passes=5, line=5)


def test_a_worked_example():
    scores = score([EXACT, SPANS, LABEL, INVALID], seen=[EXACT.gold.skeleton])
    assert (scores.rows, scores.em, scores.em_s, scores.passes, scores.invalid) == (4, 0.25, 0.5, 3.5, 1)
    assert scores.by_domain == {"alarm": Part(2, 0.5, 0.5), "music": Part(1, 0.0, 1.0)}
    assert scores.by_depth == {"1": Part(1, 0.0, 0.0), "2": Part(2, 0.5, 1.0), "4": Part(1, 0.0, 0.0)}
    assert scores.by_seen == {"seen": Part(2, 0.5, 1.0), "unseen": Part(2, 0.0, 0.0)}
    assert score([EXACT], seen=None).by_seen == {}
    value = json.loads(json.dumps(scores.to_json()))
    assert " ".join(value) == (
        "rows em em_s em_interval em_s_interval passes invalid by_domain by_depth by_seen confusions"
    )
    assert value["em_interval"] == [scores.em_low, scores.em_high]
    assert value["by_domain"]["music"] == {"rows": 1, "em": 0.0, "em_s": 1.0}
    assert {"gold": "IN:C", "predicted": None, "count": 1, "line": 4, "utterance": "x y"} in value["confusions"]


def test_depths_are_in_the_order_of_numbers():
    def chain(depth):
        node = Node("IN:A")
        for number in range(depth - 1):
            node = Node("IN:A" if number % 2 else "SL:A", [node])
        return Frame.from_tree(node)

    rows = [Outcome(chain(depth), chain(depth), None, 1) for depth in (11, 9, 3)]
    assert list(score(rows, None).by_depth) == ["3", "9", "11"]


def test_nothing_cannot_be_scored():
    with pytest.raises(DataError, match="there are no rows to score"):
        score([], None)


def test_frames_of_other_words_are_refused():
    with pytest.raises(FrameError, match=r"line 7: the predicted frame has the words \('y',\), the gold frame"):
        outcome("[IN:A x ]", "[IN:A y ]", line=7)


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


labels = st.lists(st.sampled_from(["IN:A", "IN:B", "SL:A", "SL:B"]), max_size=6)


def fewest_errors(gold, predicted):
    """The definition: the last labels are a pair, or one of them has no partner."""
    if not gold or not predicted:
        return len(gold) + len(predicted)
    ways = [fewest_errors(gold[:-1], predicted) + 1, fewest_errors(gold, predicted[:-1]) + 1]
    if is_slot(gold[-1]) == is_slot(predicted[-1]):
        ways.append(fewest_errors(gold[:-1], predicted[:-1]) + (gold[-1] != predicted[-1]))
    return min(ways)


@given(labels, labels)
def test_label_errors_are_the_fewest_that_explain_the_difference(gold, predicted):
    errors = label_errors(gold, predicted)
    assert len(errors) == fewest_errors(gold, predicted)
    lost, found = Counter(gold), Counter(predicted)
    lost.subtract(label for label, _ in errors if label)
    found.subtract(label for _, label in errors if label)
    assert +lost == +found
    assert label_errors(gold, gold) == []


def test_confusions_are_sorted_and_show_their_first_row():
    rows = [
        outcome("[IN:A x [SL:C y ] ]", "[IN:B x [SL:D y ] ]", line=1),
        outcome("[IN:A x ]", "[IN:A [SL:D x ] ]", line=2),
        outcome("[IN:A [SL:C z ] ]", "[IN:A [SL:D z ] ]", line=3),
    ]
    found = [(one.gold, one.predicted, one.count, one.line) for one in find_confusions(rows)]
    assert found == [("SL:C", "SL:D", 2, 1), (None, "SL:D", 1, 2), ("IN:A", "IN:B", 1, 1)]
    assert len(find_confusions(rows, most=1)) == 1


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


def test_the_frames_of_topv2_are_valid(topv2):
    rows = [row for row in read_rows(topv2, split="eval") if row.frame is not None]
    assert [row.line for row in rows if not is_valid_frame(row.frame)] == []
