import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import top_trees

from treepiece.errors import FrameError
from treepiece.trees.align import Span, align_words
from treepiece.trees.frame import Frame
from treepiece.trees.node import Kind, Node

REMIND = "[IN:CREATE_REMINDER Remind [SL:PERSON_REMINDED me ] to [SL:TODO call mom ] [SL:DATE_TIME to night ] . ]"


def test_leaves_quote_what_was_typed():
    frame = Frame.from_brackets(REMIND, "Remind  me to call mom tonight.")
    assert frame.words == ("Remind", "me", "to", "call", "mom", "to", "night", ".")
    assert [(leaf.label, leaf.text) for leaf in frame.leaves] == [
        ("SL:PERSON_REMINDED", "me"),
        ("SL:TODO", "call mom"),
        ("SL:DATE_TIME", "tonight"),
    ]
    assert frame.leaves[2].chars == Span(23, 30)
    assert frame.to_brackets() == (
        "[IN:CREATE_REMINDER [SL:PERSON_REMINDED me ] [SL:TODO call mom ] [SL:DATE_TIME to night ] ]"
    )


@given(top_trees)
def test_the_decoupled_form_is_its_own(tree):
    frame = Frame.from_tree(tree)
    assert frame.skeleton.is_skeleton
    again = Frame.from_tree(frame.tree)
    assert again.skeleton == frame.skeleton
    assert [leaf.text for leaf in again.leaves] == [leaf.text for leaf in frame.leaves]
    words = [text for kind, text in tree.events() if kind is Kind.WORD]
    assert list(frame.words) == words


@given(top_trees)
def test_leaves_quote_the_words_they_cover(tree):
    frame = Frame.from_tree(tree)
    for leaf, span in zip(frame.leaves, frame.spans, strict=True):
        assert leaf.text == " ".join(frame.words[span.start : span.end])
        assert frame.utterance[leaf.chars.start : leaf.chars.end] == leaf.text


@given(top_trees)
def test_json_is_read_back(tree):
    frame = Frame.from_tree(tree)
    again = Frame.from_json(json.loads(json.dumps(frame.to_json())))
    assert again == frame
    assert again.leaves == frame.leaves


@given(st.lists(st.text("abé", min_size=1, max_size=4), max_size=6), st.data())
def test_words_are_found_however_they_are_spaced(words, data):
    text = ""
    for char in "".join(words):
        text += " " * data.draw(st.integers(0, 2)) + char
    offsets = align_words(text, words)
    assert ["".join(text[start:end].split()) for start, end in offsets] == words


@given(st.text("ab ", max_size=8), st.lists(st.text("ab", min_size=1, max_size=3), max_size=4))
def test_other_words_are_refused(text, words):
    assume("".join(text.split()) != "".join(words))
    with pytest.raises(FrameError, match="of the utterance"):
        align_words(text, words)


def test_equality_is_exact_match_and_not_about_spacing():
    one = Frame.from_brackets("[IN:A [SL:B to night ] ]", "tonight")
    two = Frame.from_brackets("[IN:A [SL:B to night ] ]", "to night")
    other = Frame.from_brackets("[IN:A to [SL:B night ] ]", "tonight")
    assert one == two
    assert one != other
    assert one.skeleton == other.skeleton


def test_an_empty_utterance_is_not_replaced():
    with pytest.raises(FrameError, match="the parse has 'c' where the utterance ends"):
        Frame.from_brackets("[IN:X c ]", "")
    assert Frame.from_brackets("[IN:X ]", "").utterance == ""


def test_empty_and_mixed_slots_are_loaded_and_counted():
    frame = Frame.from_brackets("[IN:A x [SL:B ] y [SL:C in [IN:D [SL:E z ] ] ] [SL:F ] ]")
    assert frame.spans == (Span(1, 1), Span(3, 4), Span(4, 4))
    assert frame.n_mixed == 1
    assert [leaf.text for leaf in frame.leaves] == ["", "z", ""]
    assert frame.leaves[2].chars == Span(8, 8)


@pytest.mark.parametrize(
    ("words", "skeleton", "spans", "message"),
    [
        (("a",), Node("IN:A", ["a"]), (), "the skeleton of a frame contains words"),
        (("a",), Node("IN:A", [Node("SL:B")]), (), "has 1 utterance leaves but there are 0 spans"),
        (("a",), Node("IN:A", [Node("SL:B")]), (Span(0, 2),), "span (0, 2) is out of order or out of range"),
        (("a", "b"), Node("IN:A", [Node("SL:B")] * 2), (Span(1, 2), Span(0, 1)), "span (0, 1) is out of order"),
        (("a",), Node("IN:A", [Node("SL:B")]), (Span(1, 0),), "span (1, 0) is out of order"),
        (("a", ""), Node("IN:A"), (), "word 1 of a frame is empty"),
    ],
)
def test_parts_that_do_not_fit(words, skeleton, spans, message):
    with pytest.raises(FrameError) as caught:
        Frame(words, skeleton, spans, " ".join(words))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": "ab"}, "'words' as a list of non-empty strings"),
        ({"words": ["a", ""]}, "'words' as a list of non-empty strings"),
        ({"utterance": 3}, "'utterance' as a string"),
        ({"spans": ""}, "'spans' as a list of [start, end] pairs"),
        ({"spans": [[0]]}, "'spans' as a list of [start, end] pairs"),
        ({"spans": [[0, True]]}, "'spans' as a list of [start, end] pairs"),
        ({"utterance": "other"}, "they must be equal up to whitespace"),
        ({"utterance": ""}, "they must be equal up to whitespace"),
        ({"more": 1}, "with the keys utterance, words, skeleton, spans"),
    ],
)
def test_bad_json(change, message):
    value = Frame.from_brackets("[IN:A [SL:B x ] ]").to_json() | change
    with pytest.raises(FrameError) as caught:
        Frame.from_json(value)
    assert message in str(caught.value)


@pytest.mark.slow
def test_deep_and_wide():
    deep = Node("SL:B", ["x"])
    for _ in range(5_000):
        deep = Node("IN:A", [Node("SL:A", [deep])])
    assert Frame.from_tree(deep).leaves[0].text == "x"
    wide = Node("IN:A", [Node("SL:B", ["x"])] * 100_000)
    assert len(Frame.from_tree(wide).leaves) == 100_000


@given(top_trees)
def test_all_words_are_written_and_read_back(tree):
    frame = Frame.from_tree(tree)
    assume(frame.skeleton.children or frame.skeleton.label.startswith("IN:"))
    again = Frame.from_brackets(frame.to_brackets(all_words=True), frame.utterance)
    assert again == frame
    assert again.words == frame.words


def test_a_tree_that_is_one_slot_has_no_place_for_other_words():
    assert Frame.from_brackets("[SL:A b ]").to_brackets(all_words=True) == "[SL:A b ]"
    frame = Frame(("a", "b"), Node("SL:A"), (Span(1, 2),), "a b")
    with pytest.raises(FrameError, match="single slot"):
        frame.to_brackets(all_words=True)
