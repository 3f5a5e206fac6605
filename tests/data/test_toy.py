from collections import Counter
from collections.abc import Callable
from itertools import islice

import pytest

from treepiece.data.toy import (
    Dice,
    Reference,
    Token,
    ToyGrammar,
    read_phrase,
    toy_domains,
    toy_frames,
    toy_grammar,
    toy_phrases,
    toy_rows,
)
from treepiece.errors import DataError, OptionError
from treepiece.trees.brackets import format_brackets, parse_brackets
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node


@pytest.fixture(scope="module")
def frames() -> list[Frame]:
    return list(toy_frames(3000))


def test_same_seed_gives_same_rows() -> None:
    assert list(toy_rows(2)) == [
        (
            "timer",
            "please start an alarm for 3:20 pm",
            "[IN:CREATE_ALARM please start an alarm for [SL:DATE_TIME 3:20 pm ] ]",
        ),
        (
            "music",
            "can you play my focus playlist?",
            "[IN:PLAY_MUSIC can you play my [SL:PLAYLIST focus ] playlist ? ]",
        ),
    ]
    assert list(toy_rows(300, seed=5)) == list(toy_rows(300, seed=5))


def test_another_seed_gives_other_rows() -> None:
    firsts = [tuple(toy_rows(20, seed)) for seed in range(10)]
    assert len(set(firsts)) == 10


@pytest.mark.parametrize("k", [0, 1, 17, 200])
def test_fewer_rows_are_the_first_of_more(k: int) -> None:
    assert list(toy_rows(k, seed=3)) == list(islice(toy_rows(200, seed=3), k))


def test_frames_are_those_of_the_rows() -> None:
    for (_, utterance, parse), frame in zip(toy_rows(300, seed=2), toy_frames(300, seed=2), strict=True):
        assert frame == Frame.from_brackets(parse)
        assert frame.utterance == utterance
        assert format_brackets(parse_brackets(parse)) == parse


def test_decoupled_form_loses_nothing(frames: list[Frame]) -> None:
    for frame in frames:
        assert frame.n_mixed == 0
        assert all(span.start < span.end for span in frame.spans)
        for node in frame.skeleton.nodes():
            assert all(isinstance(child, Node) and child.label[:3] != node.label[:3] for child in node.children)


def test_depth_and_nesting(frames: list[Frame]) -> None:
    depths = Counter(frame.skeleton.depth for frame in frames)
    assert set(depths) <= {1, 2, 3, 4, 5, 6}
    assert depths[6] >= 0.005 * len(frames)
    assert 0.15 * len(frames) <= sum(n for depth, n in depths.items() if depth > 2) <= 0.25 * len(frames)


def test_no_row_of_the_grammar_can_be_deeper_than_six() -> None:
    phrases = toy_grammar().phrases

    def deepest(name: str) -> int:
        return max(_deepest_of(parts, deepest) for parts in phrases[name].alternatives)

    assert max(deepest(domain) for domain in toy_domains()) == 6


def _deepest_of(parts: tuple[Token, ...], deepest: Callable[[str], int]) -> int:
    here = most = 0
    for part in parts:
        if isinstance(part, Reference):
            most = max(most, here + deepest(part.name))
        elif part == "]":
            here -= 1
        elif part.startswith("["):
            here += 1
            most = max(most, here)
    assert here == 0
    return most


def test_size_of_the_world(frames: list[Frame]) -> None:
    labels = {node.label for frame in frames for node in frame.skeleton.nodes()}
    assert {domain for domain, _, _ in toy_rows(300)} == set(toy_domains())
    assert len(toy_domains()) == 7
    assert list(toy_domains()) == sorted(toy_domains())
    assert sum(label.startswith("IN:") for label in labels) == 25
    assert sum(label.startswith("SL:") for label in labels) == 33
    assert len({frame.skeleton for frame in frames}) > 200
    assert len({frame.utterance for frame in frames}) > 0.9 * len(frames)


def test_an_utterance_has_one_parse() -> None:
    parses: dict[str, str] = {}
    for _, utterance, parse in toy_rows(20_000, seed=1):
        assert parses.setdefault(utterance, parse) == parse


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("tonight", {"SL:DATE_TIME", "SL:NEW_DATE_TIME", "SL:SONG", "SL:PLAYLIST"}),
        ("paris", {"SL:CITY", "SL:DESTINATION", "SL:RECIPIENT", "SL:CONTACT"}),
        ("five minutes", {"SL:DURATION", "SL:SONG"}),
        ("in five minutes", {"SL:DATE_TIME"}),
        ("every five minutes", {"SL:FREQUENCY"}),
    ],
)
def test_only_the_context_tells_the_label(frames: list[Frame], text: str, labels: set[str]) -> None:
    assert labels <= {leaf.label for frame in frames for leaf in frame.leaves if leaf.text == text}


def test_raw_text_and_words_differ_in_spacing(frames: list[Frame]) -> None:
    attached = [frame for frame in frames if frame.utterance != " ".join(frame.words)]
    assert 0.2 * len(frames) < len(attached) < 0.6 * len(frames)
    for frame in attached:
        assert not {"~", "{", "}", "|"} & set(frame.utterance)


@pytest.mark.parametrize("make", [toy_rows, toy_frames])
@pytest.mark.parametrize(
    ("n", "seed", "name"),
    [(-1, 0, "n"), (1.0, 0, "n"), (True, 0, "n"), ("3", 0, "n"), (1, -1, "seed"), (1, None, "seed"), (1, 0.5, "seed")],
)
def test_bad_arguments_raise_at_once(
    make: Callable[[object, object], object], n: object, seed: object, name: str
) -> None:
    with pytest.raises(OptionError, match=f"^{name} must be a whole number, 0 or more, got "):
        make(n, seed)


def test_all_phrases_are_used() -> None:
    used = {"domain", *toy_domains()}
    for name, phrase in toy_grammar().phrases.items():
        used.add(name.partition(":")[0] if ":" in name else "")
        used |= {part.name for parts in phrase.alternatives for part in parts if isinstance(part, Reference)}
    assert toy_phrases().keys() <= used


def test_weights_are_how_often_an_alternative_is_picked() -> None:
    phrase = read_phrase("3: a | b\n6: c")
    dice = Dice(0)
    picks = Counter(phrase.alternatives[dice.pick(phrase.limits)] for _ in range(20_000))
    assert {parts: round(n / 2000) for parts, n in picks.items()} == {("a",): 3, ("b",): 1, ("c",): 6}


def test_a_grammar_with_a_fault_says_where() -> None:
    with pytest.raises(DataError, match="phrase 'a' refers to the phrase 'b', which does not exist"):
        ToyGrammar({"a": "x {b}"})
    with pytest.raises(DataError, match=r"in a cycle: . > . > .$"):
        ToyGrammar({"a": "x {b}", "b": "y {a?}"})
