"""Results as values: what they hold, and that they survive copies and other processes."""

import copy
import json
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treepiece.data.toy import toy_frames
from treepiece.runtime.result import Candidate, Result
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node

FRAMES = list(toy_frames(40))


def make_candidate(frame, confidence=0.75, score=1.0):
    confidences = tuple(0.5 + place / 100 for place in range(len(frame.leaves)))
    units = ("[IN:A _ ]", "[SL:B ]")
    return Candidate(frame, confidence, confidences, score, units, (0,) * frame.skeleton.n_nodes, 2)


@st.composite
def results(draw):
    frame = draw(st.sampled_from(FRAMES))
    others = [Frame.from_chars(frame.utterance, Node("IN:OTHER"), [])] * draw(st.integers(0, 2))
    candidates = [make_candidate(one, draw(st.floats(0, 1)), draw(st.floats(0, 1))) for one in (frame, *others)]
    times = draw(st.dictionaries(st.sampled_from(["subwords", "model"]), st.floats(0, 9)))
    return Result(frame.utterance, tuple(candidates), draw(st.booleans()), times)


@given(results())
def test_slots_quote_the_text_and_name_their_intent(result):
    for candidate in result.candidates:
        assert candidate.intent == candidate.frame.skeleton.label
        assert [slot.label for slot in candidate.slots] == [leaf.label for leaf in candidate.leaves]
        assert [slot.confidence for slot in candidate.slots] == list(candidate.leaf_confidences)
        for slot in candidate.slots:
            assert slot.text == result.text[slot.start : slot.end]
            assert slot.intent in intents_above(candidate.frame.skeleton, slot.label)


def intents_above(tree, label, intent=None):
    """Return the nearest intents above the childless nodes of a label."""
    intent = tree.label if tree.label.startswith("IN:") else intent
    below = {found for child in tree.children for found in intents_above(child, label, intent)}
    return below | ({intent} if tree.label == label and not tree.children else set())


@given(results())
def test_what_is_not_understood_has_no_meaning(result):
    if result.understood:
        assert (result.intent, result.slots) == (result.best.intent, result.best.slots)
        assert (result.frame, result.tree) == (result.best.frame, result.best.tree)
    else:
        assert (result.intent, result.slots, result.frame, result.tree) == (None, (), None, None)
    assert result.confidence == result.candidates[0].confidence


@given(results())
def test_copies_are_equal(result):
    _ = result.best.tree, result.best.slots  # what is computed once is copied too
    for same in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert same == result
        assert hash(same) == hash(result)
        assert same.times == result.times
        assert same.to_dict() == result.to_dict()
        assert repr(same) == repr(result)
    assert Result(result.text, result.candidates[::-1], not result.understood) != result


def test_another_process_gets_an_equal_result():
    """With other hashes of strings: a tree that kept its own would not be found equal."""
    result = Result(FRAMES[0].utterance, (make_candidate(FRAMES[0]),), True, {"model": 1.5})
    code = "import pickle, sys; result = pickle.load(sys.stdin.buffer); sys.stdout.buffer.write(pickle.dumps(result))"
    for seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", code],
            input=pickle.dumps(result),
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert pickle.loads(ran.stdout) == result


@given(results())
def test_a_dictionary_holds_plain_values(result):
    value = result.to_dict()
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    assert value["tree"] == result.tree
    assert len(value["leaves"]) == len(result.slots)
    assert len(value.get("nbest", [None])) == len(result.candidates)


@given(results())
def test_repr_says_the_text_the_tree_and_the_confidence(result):
    assert repr(result.text) in repr(result)
    assert f"confidence={result.confidence:.3f}" in repr(result)
    assert (repr(result.tree) if result.understood else "understood=False") in repr(result)
    assert repr(result.best.tree) in repr(result.best)


def test_repr_of_words_that_top_text_cannot_hold():
    frame = Frame.from_chars("a ] b", Node("IN:A", [Node("SL:B")]), [Span(0, 5)])
    result = Result("a ] b", (make_candidate(frame),))
    assert result.tree is None
    assert repr(result) == "Result('a ] b', tree='IN:A', confidence=0.750)"
    assert repr(result.best).startswith("Candidate(")


@pytest.mark.parametrize("name", ["text", "candidates", "understood"])
def test_results_cannot_be_changed(name):
    result = Result(FRAMES[0].utterance, (make_candidate(FRAMES[0]),))
    with pytest.raises(AttributeError):
        setattr(result, name, None)
