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
from strategies import frames

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


def paths_in(node, path=()):
    """Yield the path of every node; siblings with one label are numbered."""
    yield path
    labels = [child.label for child in node.children]
    for place, child in enumerate(node.children):
        number = labels[: place + 1].count(child.label)
        yield from paths_in(child, (*path, child.label + (f"[{number}]" if number > 1 else "")))


@given(frames(["play", "x", "y"]))
def test_flat_entities_keep_every_node(frame):
    """Each node is on the path of an entity or of a nested intent."""
    result = Result(frame.utterance, (make_candidate(frame),))
    flat = result.to_entities()
    found = [entity["path"] for entity in flat["entities"]] + [intent["path"] for intent in flat["nested_intents"]]
    ends = {tuple(path[1:place]) for path in found for place in range(1, len(path) + 1)} | {()}
    assert ends == set(paths_in(frame.skeleton))
    assert all(path[0] == frame.skeleton.label for path in found)
    assert len(found) == len(set(map(tuple, found)))
    assert flat["intent"] == {"name": result.intent.removeprefix("IN:"), "confidence": result.confidence}
    for entity, slot in zip(flat["entities"], result.slots, strict=True):
        assert (entity["value"], entity["start"], entity["end"], entity["confidence"]) == slot[1:4] + slot[5:]
    assert json.loads(json.dumps(flat)) == flat


def test_flat_entities_have_roles_and_groups():
    frame = Frame.from_brackets("[IN:FAQ/FLY from [SL:CITY/DEPARTURE oslo ] to [SL:CITY#2 rome ] ]")
    flat = Result(frame.utterance, (make_candidate(frame),)).to_entities(lower=True)
    assert flat["intent"]["name"] == "faq/fly"
    assert [{key: one.get(key) for key in ("entity", "role", "group")} for one in flat["entities"]] == [
        {"entity": "city", "role": "departure", "group": None},
        {"entity": "city", "role": None, "group": "2"},
    ]
    assert flat["entities"][0]["path"] == ["IN:FAQ/FLY", "SL:CITY/DEPARTURE"]


def test_what_is_not_understood_has_no_entities():
    result = Result(FRAMES[0].utterance, (make_candidate(FRAMES[0]),), understood=False)
    nothing = {"name": None, "confidence": 0.75}
    assert result.to_entities() == {"text": result.text, "intent": nothing, "entities": [], "nested_intents": []}
