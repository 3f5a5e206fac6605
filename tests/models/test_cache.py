"""One token a step, with what earlier steps computed, is the same as all tokens at once."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import rows_of

from treepiece.decoding.linearization import TokenGrammar, TokenState, TokenVocabulary
from treepiece.decoding.search import beam_search, label_pairs
from treepiece.definition import DecoderConfig
from treepiece.models.baselines import AutoregressiveModel, CachedScore
from treepiece.models.encoder import (
    encode_utterances,
    load_encoder,
    to_numpy,
)
from treepiece.models.layers import causal_mask
from treepiece.models.token_decoder import BLANK

ROWS = rows_of(200)
PAIRS = label_pairs([row.frame.skeleton for row in ROWS])
VOCABULARY = TokenVocabulary(sorted({child for _, child in PAIRS}))
GRAMMAR = TokenGrammar(VOCABULARY, PAIRS, budget=30)
CONFIG = DecoderConfig(n_heads=2, max_length=40)


@pytest.fixture(scope="module")
def encoder(tiny_encoder):
    encoder, _ = load_encoder(str(tiny_encoder))
    return encoder.eval()


@pytest.fixture(scope="module")
def utterances(tiny_encoder):
    """Utterances of many different lengths, one of them empty."""
    _, subwords = load_encoder(str(tiny_encoder))
    encoded = subwords.encode_batch(["", *(row.frame.utterance for row in ROWS)])
    assert len({len(utterance.ids) for utterance in encoded}) > 8
    return encoded


def make(encoder, seed, scale=1.0):
    torch.manual_seed(seed)
    model = AutoregressiveModel(encoder, GRAMMAR, CONFIG).eval()
    with torch.no_grad():
        for weight in model.decoder.parameters():
            weight.mul_(scale)
    return model


def whole_score(model, encoded):
    """Return the definition of a score: the decoder reads all tokens of a row, as in training."""

    def score(rows):
        logits = []
        for item, state in rows:
            tokens = torch.tensor([(BLANK, *state.tokens)])
            logits.append(model.decoder(tokens, causal_mask(tokens), encoded.select([item]))[0, -1])
        return to_numpy(torch.stack(logits))

    return score


def starts_of(utterances):
    return [TokenState(len(utterance.offsets)) for utterance in utterances]


@given(seed=st.integers(0, 999), n_tokens=st.integers(1, 12), data=st.data())
@settings(max_examples=40)
def test_steps_give_the_logits_of_the_whole_sequence_at_every_place(encoder, utterances, seed, n_tokens, data):
    chosen = [utterances[0], *data.draw(st.lists(st.sampled_from(utterances[1:]), min_size=1, max_size=4))]
    decoder = make(encoder, seed, scale=2.0).decoder
    # Any labels, closing brackets and pointers at subwords, in any order: more than the grammar allows.
    rows = []
    for utterance in chosen:
        token = st.integers(0, VOCABULARY.close + len(utterance.offsets))
        rows.append([BLANK, *data.draw(st.lists(token, min_size=n_tokens, max_size=n_tokens))])
    tokens = torch.tensor(rows)
    with torch.no_grad():
        encoded = encode_utterances(encoder, chosen)
        expected = decoder(tokens, causal_mask(tokens), encoded)
        cached = decoder.cross_attention_cache(encoded)
        past = decoder.start(cached)
        for place, token in enumerate(tokens.T):
            logits, past = decoder.step(token, past, cached)
            torch.testing.assert_close(logits, expected[:, place], atol=1e-4, rtol=1e-4)
            assert len(past) == 2
            assert {part.shape for pair in past for part in pair} == {(len(chosen), 2, place + 1, encoder.width // 2)}


@pytest.mark.parametrize("seed", range(4))
def test_a_cached_search_finds_what_the_whole_pass_finds(encoder, utterances, seed):
    model = make(encoder, seed, scale=3.0)
    chosen = utterances[seed * 20 : seed * 20 + 20]
    with torch.no_grad():
        encoded = encode_utterances(encoder, chosen)
        expected = beam_search(starts_of(chosen), whole_score(model, encoded), GRAMMAR)
    found = model.parse(chosen)
    n_pointers = 0
    for parses, states in zip(found, expected, strict=True):
        read = [VOCABULARY.read(state.tokens) for state in states]
        assert [(parse.skeleton, list(parse.spans)) for parse in parses] == read
        assert [parse.log_p for parse in parses] == pytest.approx([state.log_p for state in states], abs=1e-4)
        assert [parse.passes for parse in parses] == [len(state.tokens) for state in states]
        n_pointers += sum(token >= VOCABULARY.first_pointer for state in states for token in state.tokens)
    assert len({parse.passes for parses in found for parse in parses}) > 1  # rows leave the batch one by one
    assert n_pointers > 0


def test_a_row_goes_on_from_its_parent_whatever_the_order(encoder, utterances):
    model = make(encoder, seed=1, scale=3.0)
    chosen = utterances[:3]
    with torch.no_grad():
        encoded = encode_utterances(encoder, chosen)
        cached, whole = CachedScore(model.decoder, encoded), whole_score(model, encoded)
        for keys in (
            [(0, ()), (1, ()), (2, ())],
            [(2, (1,)), (0, (3,)), (2, (0,)), (1, (5,))],
            [(0, (3, 1)), (1, (5, 2)), (2, (0, 2))],
            [(2, (0, 2, 4)), (2, (0, 2, 1)), (0, (3, 1, 1))],
            [(2, (0, 2, 1, 4))],
        ):
            rows = [(item, TokenState(len(chosen[item].offsets), tokens)) for item, tokens in keys]
            expected = whole(rows)
            assert cached(rows)[:, : expected.shape[1]] == pytest.approx(expected, abs=1e-4)


def test_the_utterances_are_read_once_and_each_step_is_one_call_with_one_token_a_row(encoder, utterances, monkeypatch):
    model = make(encoder, seed=2, scale=3.0)
    sizes, n_keys = [], []
    step, cache = model.decoder.step, model.decoder.cross_attention_cache
    monkeypatch.setattr(model.decoder, "step", lambda tokens, *rest: sizes.append(tokens.shape) or step(tokens, *rest))
    monkeypatch.setattr(model.decoder, "cross_attention_cache", lambda x: n_keys.append(1) or cache(x))
    found = model.parse(utterances[:20])
    assert len(n_keys) == 1
    assert len(sizes) == max(parse.passes for parses in found for parse in parses)
    assert all(len(size) == 1 and size[0] <= 20 for size in sizes)
