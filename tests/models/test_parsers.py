"""Whatever its weights are, a model gives valid frames."""

import random

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treepiece import TokenizerConfig, TreePieceTokenizer
from treepiece.data.toy import toy_frames
from treepiece.decoding.linearization import TokenGrammar, TokenVocabulary
from treepiece.decoding.search import UnitGrammar, label_pairs
from treepiece.definition import DecoderConfig, Extensions
from treepiece.evaluation.outcomes import is_valid_frame
from treepiece.models.baselines import (
    AutoregressiveModel,
    NonAutoregressiveModel,
)
from treepiece.models.treepiece_model import TreePieceModel
from treepiece.trees.frame import Frame

SKELETONS = [frame.skeleton for frame in toy_frames(200)]
PAIRS = label_pairs(SKELETONS)
UNITS = TreePieceTokenizer.train(SKELETONS, TokenizerConfig(merges=30)).units
VOCABULARY = TokenVocabulary(sorted({child for _, child in PAIRS}))
CONFIG = DecoderConfig(n_heads=2, max_length=64)


def make(kind, encoder, seed, scale):
    torch.manual_seed(seed)
    model = {
        "treepiece": lambda: TreePieceModel(encoder, UnitGrammar(UNITS, PAIRS, budget=24), CONFIG),
        "extended": lambda: TreePieceModel(
            encoder, UnitGrammar(UNITS, PAIRS, budget=24), CONFIG, Extensions(True, True, True, True)
        ),
        "ar": lambda: AutoregressiveModel(encoder, TokenGrammar(VOCABULARY, PAIRS, budget=40), CONFIG),
        "nar": lambda: NonAutoregressiveModel(encoder, VOCABULARY, CONFIG),
    }[kind]()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(scale)
    return model.eval()


texts = st.lists(st.text(min_size=0, max_size=20), min_size=1, max_size=6)


@pytest.mark.parametrize("kind", ["treepiece", "extended", "ar", "nar"])
@given(texts=texts, seed=st.integers(0, 99), scale=st.sampled_from([0.0, 1.0, 8.0, float("nan")]))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_random_weights_and_random_text_give_valid_frames(kind, encoder, subwords, texts, seed, scale):
    model = make(kind, encoder, seed, scale)
    encoded = subwords.encode_batch(texts)
    for utterance, parses in zip(encoded, model.parse(encoded), strict=True):
        for parse in parses:
            n = len(utterance.offsets)
            frame = Frame(("w",) * n, parse.skeleton, parse.spans, " ".join("w" * n))
            assert frame.skeleton.label.startswith("IN:")
            assert kind == "nar" or label_pairs([frame.skeleton]) <= PAIRS


@pytest.mark.parametrize("kind", ["treepiece", "extended", "ar", "nar"])
def test_a_thousand_texts_of_random_bytes_give_valid_frames(kind, encoder, subwords):
    dice = random.Random(0)
    texts = [dice.randbytes(dice.randrange(30)).decode("utf-8", errors="replace") for _ in range(1000)]
    encoded = subwords.encode_batch(texts)
    model = make(kind, encoder, seed=7, scale=3.0)
    for start in range(0, len(texts), 100):
        for text, utterance, (best, *_) in zip(
            texts[start : start + 100],
            encoded[start : start + 100],
            model.parse(encoded[start : start + 100]),
            strict=True,
        ):
            assert is_valid_frame(Frame.from_chars(text, best.skeleton, [utterance.chars(span) for span in best.spans]))


@pytest.mark.parametrize("kind", ["treepiece", "extended", "ar", "nar"])
def test_an_utterance_is_parsed_alone_as_in_a_batch(kind, encoder, subwords):
    model = make(kind, encoder, seed=3, scale=2.0)
    encoded = subwords.encode_batch(["remind me to call mom", "rain?", "set a timer for ten minutes, please"])
    together = model.parse(encoded)
    for utterance, parses in zip(encoded, together, strict=True):
        (alone,) = model.parse([utterance])
        assert [(p.skeleton, p.spans) for p in alone] == [(p.skeleton, p.spans) for p in parses]
        assert [p.log_p for p in alone] == pytest.approx([p.log_p for p in parses], abs=1e-3)


@pytest.mark.parametrize("kind", ["treepiece", "extended", "ar"])
def test_several_candidates_are_different_frames_in_order(kind, encoder, subwords):
    model = make(kind, encoder, seed=5, scale=1.0)
    for parses in model.parse(subwords.encode_batch(["play some jazz", "text grace"]), nbest=4):
        assert 1 < len(parses) <= 4
        assert len({(parse.skeleton, parse.spans) for parse in parses}) == len(parses)
        others = [parse.log_p for parse in parses[1:]]
        assert others == sorted(others, reverse=True)
