"""Noise changes the words of a frame as people do, and neither its skeleton nor the borders of its leaves."""

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import given
from hypothesis import strategies as st
from strategies import frames

from treepiece.data.examples import make_examples
from treepiece.definition import DecoderConfig, Extensions, ModelKind
from treepiece.models.encoder import load_encoder
from treepiece.training.noise import NOISE_WEIGHTS, NoiseKind, add_noise, make_noise
from treepiece.training.preparation import noised_examples
from treepiece.training.recipe import NoiseConfig
from treepiece.trees.frame import Frame

WORDS = (
    *("what", "'s", "Set", "WAKE", "I", "weather", "tomorrow", "e", "please", "don't", "hi,", "4.30am", "p.m."),
    *("8", ":", "30", "1", ".", "5", "seven", "one", "twenty", "Ten", "40"),
    *("?", "!", ",", "...", "'", "’", "-", "“x”"),
    *("Zürich", "straße", "東京", "🎵", "٣", "é", "\u0301", "\ud800", "a b", "\xa0", "\u2003x"),
)
TYPOS = (
    *(NoiseKind.SWAPPED_LETTERS, NoiseKind.NEARBY_KEY),
    *(NoiseKind.DROPPED_LETTER, NoiseKind.DOUBLED_LETTER, NoiseKind.INSERTED_LETTER),
)
FILLERS = (NoiseKind.FILLER_BEFORE, NoiseKind.FILLER_AFTER, NoiseKind.FILLERS_AROUND)
DIGITS = {"seven": "7", "one": "1", "twenty": "20", "ten": "10", "eight": "8", "five": "5", "forty": "40"} | {
    "thirty": "30"
}
SAME = {
    NoiseKind.APOSTROPHES: lambda text: re.sub("['’]", "", text),
    NoiseKind.PUNCTUATION: lambda text: re.sub("[.,?!:;]", "", text),
    NoiseKind.FINAL_MARK: lambda text: re.sub("[.?!]", "", text),
    NoiseKind.LETTER_CASE: str.casefold,
    NoiseKind.JOINED_WORDS: str,
    NoiseKind.SPLIT_WORD: str,
    NoiseKind.NUMBERS: lambda text: re.sub("|".join(DIGITS), lambda word: DIGITS[word[0]], text.lower()),
}
"""What each kind of noise leaves as it is, besides whitespace."""

seeds = st.integers(0, 2**32)


@st.composite
def typed_frames(draw):
    """Frames over words of all sorts, with and without blanks between them."""
    words = draw(st.lists(st.sampled_from(WORDS), max_size=6))
    gaps = draw(st.lists(st.sampled_from([" ", " ", "", "  "]), min_size=len(words) + 1, max_size=len(words) + 1))
    utterance = "".join(text for pair in zip(gaps, [*words, ""], strict=True) for text in pair)
    return replace(draw(frames(words)), utterance=utterance)


def noised(kind, frame, seed=0):
    return make_noise(kind)(frame, np.random.default_rng(seed))


def parts(frame):
    """Return the text of each leaf, and the text between them, without whitespace."""
    leaves, outside, end = [], [], 0
    for leaf in frame.leaves:
        outside.append(frame.utterance[end : max(end, leaf.chars.start)])
        leaves.append(leaf.text)
        end = max(end, leaf.chars.end)
    outside.append(frame.utterance[end:])
    assert len("".join(leaves + outside)) == len(frame.utterance)
    return ["".join(text.split()) for text in [*leaves, "".join(outside)]]


def borders_in_words(frame):
    """Return how often a leaf begins or ends between two letters or digits, or between two marks."""
    owner = {place: leaf for leaf, span in enumerate(frame.spans) for place in range(*span)}
    return sum(
        one.end == two.start
        and owner.get(place) != owner.get(place + 1)
        and frame.utterance[one.end - 1].isalnum() == frame.utterance[two.start].isalnum()
        for place, (one, two) in enumerate(pairwise(frame.offsets))
    )


def assert_is_noised(frame, before):
    assert frame.skeleton is before.skeleton
    assert frame.n_mixed == before.n_mixed
    assert [bool(leaf.text) for leaf in frame.leaves] == [bool(leaf.text) for leaf in before.leaves]
    assert [span.start < span.end for span in frame.spans] == [span.start < span.end for span in before.spans]
    assert "".join(frame.utterance.split()) == "".join("".join(frame.words).split())
    assert frame is before or (frame.utterance != before.utterance and not borders_in_words(frame))


@given(frame=typed_frames(), kind=st.sampled_from(NoiseKind), seed=seeds)
def test_each_kind_keeps_skeleton_and_leaves(frame, kind, seed):
    found = noised(kind, frame, seed)
    assert_is_noised(found, frame)
    again = noised(kind, frame, seed)
    assert (found, found.utterance) == (again, again.utterance)


@given(frame=typed_frames(), seed=seeds)
def test_one_or_two_kinds_keep_skeleton_and_leaves(frame, seed):
    found = add_noise(frame, np.random.default_rng(seed))
    assert_is_noised(found, frame)
    again = add_noise(frame, np.random.default_rng(seed))
    assert (found, found.utterance) == (again, again.utterance)


@given(frame=typed_frames(), kind=st.sampled_from(sorted(SAME)), seed=seeds)
def test_each_leaf_has_the_changed_words_of_that_leaf(frame, kind, seed):
    for after, before in zip(parts(noised(kind, frame, seed)), parts(frame), strict=True):
        assert SAME[kind](after) == SAME[kind](before)


@given(frame=typed_frames(), kind=st.sampled_from(TYPOS), seed=seeds)
def test_a_typo_changes_a_letter_of_one_word(frame, kind, seed):
    changed = [two for two in zip(parts(noised(kind, frame, seed)), parts(frame), strict=True) if len(set(two)) > 1]
    assert len(changed) <= 1
    for after, before in changed:
        n_new = sum((Counter(after.lower()) - Counter(before.lower())).values())
        n_gone = sum((Counter(before.lower()) - Counter(after.lower())).values())
        assert (n_new, n_gone) == {
            NoiseKind.SWAPPED_LETTERS: (0, 0),
            NoiseKind.NEARBY_KEY: (1, 1),
            NoiseKind.DROPPED_LETTER: (0, 1),
            NoiseKind.DOUBLED_LETTER: (1, 0),
            NoiseKind.INSERTED_LETTER: (1, 0),
        }[kind]


@given(frame=typed_frames(), kind=st.sampled_from(FILLERS), seed=seeds)
def test_fillers_are_outside_of_all_leaves(frame, kind, seed):
    found = noised(kind, frame, seed)
    *leaves, _ = parts(found)
    assert leaves == parts(frame)[:-1]
    text, before = ("".join("".join(one.words).split()).lower() for one in (found, frame))
    assert before.rstrip(".?!") in text


def variants(kind, text, utterance=None, n=300):
    """Return what a kind of noise makes of a frame: its utterance, and the text of its leaves."""
    frame = Frame.from_brackets(text, utterance)
    found = [noised(kind, frame, seed) for seed in range(n)]
    return {(one.utterance, *(leaf.text for leaf in one.leaves)) for one in found}


@pytest.mark.parametrize(
    ("kind", "text", "utterance", "expected"),
    [
        (NoiseKind.SWAPPED_LETTERS, "[IN:A [SL:B Noon ] ]", None, {("Onon", "Onon"), ("Nono", "Nono")}),
        (NoiseKind.DROPPED_LETTER, "[IN:A [SL:B am ] ]", None, {("a", "a"), ("m", "m")}),
        (NoiseKind.DOUBLED_LETTER, "[IN:A [SL:B 8 am ] ]", None, {("8 aam", "8 aam"), ("8 amm", "8 amm")}),
        (
            NoiseKind.APOSTROPHES,
            "[IN:A what 's [SL:B 5 o’clock ] ]",
            "what's 5 o’clock",
            {("whats 5 oclock", "5 oclock")},
        ),
        (NoiseKind.PUNCTUATION, "[IN:A [SL:B 8 : 30 ] , ok ? ]", "8:30, ok?", {("830 ok", "830")}),
        (NoiseKind.PUNCTUATION, "[IN:A [SL:B 1 . 5 ] h . ]", "1.5 h.", {("1.5 h", "1.5")}),
        (NoiseKind.PUNCTUATION, "[IN:A [SL:B 1.5 ] yes , no ]", "1.5 yes,no", {("1.5 yes,no", "1.5")}),
        (NoiseKind.PUNCTUATION, "[IN:A [SL:B ? ] , ]", None, {("? ,", "?")}),
        (NoiseKind.FINAL_MARK, "[IN:A [SL:B x ] ]", None, {("x.", "x"), ("x?", "x"), ("x!", "x")}),
        (NoiseKind.FINAL_MARK, "[IN:A [SL:B x ] . ]", "x.", {("x", "x"), ("x?", "x"), ("x!", "x")}),
        (
            NoiseKind.LETTER_CASE,
            "[IN:A call [SL:B Bo ] ]",
            None,
            {("call bo", "bo"), ("CALL BO", "BO"), ("Call Bo", "Bo")},
        ),
        (NoiseKind.JOINED_WORDS, "[IN:A a b [SL:B c d ] e ]", None, {("ab c d e", "c d"), ("a b cd e", "cd")}),
        (NoiseKind.JOINED_WORDS, "[IN:A [SL:B a ] [SL:B b ] ? ]", None, {("a b ?", "a", "b")}),
        (NoiseKind.JOINED_WORDS, "[IN:A [SL:B 5 30 am ] ]", None, {("5 30am", "5 30am")}),
        (NoiseKind.SPLIT_WORD, "[IN:A the [SL:B today ] ]", None, {("the to day", "to day"), ("the tod ay", "tod ay")}),
        (NoiseKind.NUMBERS, "[IN:A [SL:B 7 pm ] ]", None, {("seven pm", "seven pm")}),
        (NoiseKind.NUMBERS, "[IN:A [SL:B Ninety ] . ]", "Ninety.", {("90.", "90")}),
        (NoiseKind.NUMBERS, "[IN:A [SL:B 7 : 30 ] ]", "7:30", {("7:30", "7:30")}),
        (NoiseKind.NUMBERS, "[IN:A [SL:B twenty five ] ]", None, {("twenty five", "twenty five")}),
        (NoiseKind.NUMBERS, "[IN:A this one [SL:B in one hour ] ]", None, {("this one in 1 hour", "in 1 hour")}),
        (NoiseKind.NUMBERS, "[IN:A [SL:B 21 7th ] ]", None, {("21 7th", "21 7th")}),
    ],
)
def test_noise_is_what_people_type(kind, text, utterance, expected):
    assert variants(kind, text, utterance) == expected


def test_fillers_go_before_the_final_mark_and_with_the_case_of_the_utterance():
    text = "[IN:A Play [SL:B jazz ] . ]"
    after = {utterance for utterance, _ in variants(NoiseKind.FILLER_AFTER, text, "Play jazz.")}
    assert {"Play jazz please.", "Play jazz, thanks."} <= after
    assert all(utterance.endswith(".") and not utterance.endswith("jazz.") for utterance in after)
    before = {utterance for utterance, _ in variants(NoiseKind.FILLER_BEFORE, text, "Play jazz.")}
    assert {"Please play jazz.", "Hey, play jazz.", "Could you please play jazz."} <= before
    assert {"HEY, PLAY JAZZ"} <= {one for one, _ in variants(NoiseKind.FILLER_BEFORE, "[IN:A PLAY [SL:B JAZZ ] ]")}
    assert {"Hey Bob"} <= {one for one, _ in variants(NoiseKind.FILLER_BEFORE, "[IN:A [SL:B Bob ] ]")}


def test_requests_go_before_verbs_and_no_filler_is_said_twice():
    asked = variants(NoiseKind.FILLER_BEFORE, "[IN:A what is [SL:B up ] ]")
    assert not any("you" in utterance for utterance, _ in asked)
    kinds = (NoiseKind.FILLER_BEFORE, NoiseKind.FILLER_AFTER)
    polite = [variants(kind, "[IN:A please [SL:B stop ] please ]") for kind in kinds]
    assert all(utterance.count("please") == 2 for found in polite for utterance, _ in found)


def test_typos_are_mostly_in_long_words():
    found = variants(NoiseKind.DOUBLED_LETTER, "[IN:A set my [SL:B alarm ] ]", n=2000)
    assert any(leaf == "alarm" for _, leaf in found)
    frame = Frame.from_brackets("[IN:A set my [SL:B alarm ] ]")
    n_long = sum(noised(NoiseKind.DOUBLED_LETTER, frame, seed).leaves[0].text != "alarm" for seed in range(1000))
    assert 850 < n_long < 950


@pytest.mark.parametrize(
    ("text", "utterance"), [("[IN:A what [SL:B mom ] s up ]", "what moms up"), ("[IN:A [SL:B ( ] ) x ]", "() x")]
)
@pytest.mark.parametrize("kind", NoiseKind)
def test_a_leaf_that_ends_inside_a_word_leaves_a_frame_as_it_is(kind, text, utterance):
    frame = Frame.from_brackets(text, utterance)
    assert noised(kind, frame) is frame


def test_an_apostrophe_at_the_border_of_a_leaf_stays():
    frame = Frame.from_brackets("[IN:A [SL:B mom ] 's up ]", "mom's up")
    assert noised(NoiseKind.APOSTROPHES, frame) is frame


@pytest.mark.parametrize("kind", NoiseKind)
def test_a_frame_without_words_stays_as_it_is(kind):
    frame = Frame.from_brackets("[IN:A [SL:B ] ]")
    assert noised(kind, frame) is frame


def test_kinds_are_as_frequent_as_their_weights_say():
    frame, rng = Frame.from_brackets("[IN:A [SL:B word ] ]"), np.random.default_rng(0)
    weights = dict.fromkeys(NOISE_WEIGHTS, 0.0) | {NoiseKind.SPLIT_WORD: 3.0, NoiseKind.FINAL_MARK: 1.0}
    found = Counter(add_noise(frame, rng, weights).utterance for _ in range(1000))
    assert set(found) == {f"{word}{mark}" for word in ("word", "wo rd") for mark in ("", *".?!")} - {"word"}
    n_both = sum(n for utterance, n in found.items() if " " in utterance and utterance[-1] != "d")
    assert 250 < n_both < 350
    assert 2 < found["wo rd"] / sum(found[f"word{mark}"] for mark in ".?!") < 4
    assert add_noise(frame, rng, dict.fromkeys(NOISE_WEIGHTS, 0.0)) is frame


@pytest.fixture
def model(tiny_encoder):
    """Return what `noised_examples` reads of a model."""
    _, subwords = load_encoder(str(tiny_encoder))
    definition = SimpleNamespace(kind=ModelKind.TREEPIECE, extensions=Extensions(), decoder=DecoderConfig())
    return SimpleNamespace(subwords=subwords, definition=definition)


def draw(examples, model, seed=0, **settings):
    return noised_examples(examples, model, NoiseConfig(**settings), np.random.default_rng(seed))


def test_a_share_of_the_examples_gets_noise_and_exact_spans(toy, model):
    examples, _ = make_examples(toy(1000), model.subwords)
    assert draw(examples, model) is examples
    found = draw(examples, model, share=0.3)
    changed = [place for place, example in enumerate(found) if example is not examples[place]]
    assert 250 < len(changed) < 350
    assert found == draw(examples, model, share=0.3) != draw(examples, model, seed=1, share=0.3)
    for place in changed:
        one, before = found[place], examples[place]
        assert_is_noised(one.frame, before.frame)
        assert (one.line, one.domain, one.unit_ids) == (before.line, before.domain, before.unit_ids)
        (subwords,) = model.subwords.encode_batch([one.frame.utterance])
        assert one.subwords == subwords
        assert [one.subwords.chars(span) for span in one.spans] == [leaf.chars for leaf in one.frame.leaves]


def test_an_example_whose_noise_does_not_fit_stays_as_it_is(toy, model):
    examples, _ = make_examples(toy(60), model.subwords)
    model.subwords.max_length = max(len(example.subwords.ids) for example in examples)
    weights = {kind: float(kind is NoiseKind.FILLERS_AROUND) for kind in NoiseKind}
    found = draw(examples, model, share=1.0, weights=weights)
    long = [place for place, one in enumerate(examples) if len(one.subwords.ids) == model.subwords.max_length]
    assert all(found[place] is examples[place] for place in long)
    assert 0 < sum(one is before for one, before in zip(found, examples, strict=True)) < len(examples)
    model.definition.decoder = replace(model.definition.decoder, max_length=4)
    large = draw(examples, model, share=1.0, weights=weights)
    assert any(one is not before for one, before in zip(found, examples, strict=True))
    assert all(one is before or one.frame.skeleton.n_nodes <= 2 for one, before in zip(large, examples, strict=True))
