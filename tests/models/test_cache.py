"""One token a step, with what earlier steps computed, is the same as all tokens at once."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from tiny import rows_of  # noqa: E402

from treepiece.decoding.grammar import label_pairs  # noqa: E402
from treepiece.decoding.linear import LinearGrammar, LinearState, LinearVocabulary  # noqa: E402
from treepiece.decoding.search import beam_search  # noqa: E402
from treepiece.definition import DecoderConfig  # noqa: E402
from treepiece.models.ar import AutoregressiveModel, CachedScore  # noqa: E402
from treepiece.models.encoder import load_encoder  # noqa: E402
from treepiece.models.layers import causal_mask  # noqa: E402
from treepiece.models.linear import BLANK  # noqa: E402
from treepiece.models.utterances import encode_utterances, to_numpy  # noqa: E402

ROWS = rows_of(200)
PAIRS = label_pairs([row.frame.skeleton for row in ROWS])
VOCABULARY = LinearVocabulary(sorted({child for _, child in PAIRS}))
GRAMMAR = LinearGrammar(VOCABULARY, PAIRS, budget=30)
CONFIG = DecoderConfig(n_heads=2, longest=40)


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


def whole_score(model, memory):
    """Return the definition of a score: the decoder reads all tokens of a row, as in training."""

    def score(rows):
        logits = []
        for item, state in rows:
            tokens = torch.tensor([(BLANK, *state.tokens)])
            logits.append(model.decoder(tokens, causal_mask(tokens), memory.select([item]))[0, -1])
        return to_numpy(torch.stack(logits))

    return score


def starts_of(utterances):
    return [LinearState(len(utterance.offsets)) for utterance in utterances]


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
        memory = encode_utterances(encoder, chosen)
        expected = decoder(tokens, causal_mask(tokens), memory)
        remembered = decoder.remember(memory)
        past = decoder.start(remembered)
        for place, token in enumerate(tokens.T):
            logits, past = decoder.step(token, past, remembered)
            torch.testing.assert_close(logits, expected[:, place], atol=1e-4, rtol=1e-4)
            assert past.keys.shape == past.values.shape == (2, len(chosen), 2, place + 1, encoder.width // 2)


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_a_cached_search_finds_what_the_whole_pass_finds(encoder, utterances, seed, beam):
    model = make(encoder, seed, scale=3.0)
    chosen = utterances[seed * 30 : seed * 30 + 30]
    with torch.no_grad():
        memory = encode_utterances(encoder, chosen)
        expected = beam_search(starts_of(chosen), whole_score(model, memory), GRAMMAR, beam=beam)
    found = model.parse(chosen, beam=beam)
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
        memory = encode_utterances(encoder, chosen)
        cached, whole = CachedScore(model.decoder, memory), whole_score(model, memory)
        for keys in (
            [(0, ()), (1, ()), (2, ())],
            [(2, (1,)), (0, (3,)), (2, (0,)), (1, (5,))],
            [(0, (3, 1)), (1, (5, 2)), (2, (0, 2))],
            [(2, (0, 2, 4)), (2, (0, 2, 1)), (0, (3, 1, 1))],
            [(2, (0, 2, 1, 4))],
        ):
            rows = [(item, LinearState(len(chosen[item].offsets), tokens)) for item, tokens in keys]
            expected = whole(rows)
            assert cached(rows)[:, : expected.shape[1]] == pytest.approx(expected, abs=1e-4)


def test_the_utterances_are_read_once_and_each_step_is_one_call_with_one_token_a_row(encoder, utterances, monkeypatch):
    model = make(encoder, seed=2, scale=3.0)
    sizes, n_keys = [], []
    step, remember = model.decoder.step, model.decoder.remember
    monkeypatch.setattr(model.decoder, "step", lambda tokens, *rest: sizes.append(tokens.shape) or step(tokens, *rest))
    monkeypatch.setattr(model.decoder, "remember", lambda memory: n_keys.append(1) or remember(memory))
    found = model.parse(utterances[:20], beam=3)
    assert len(n_keys) == 1
    assert len(sizes) == max(parse.passes for parses in found for parse in parses)
    assert all(len(size) == 1 and size[0] <= 60 for size in sizes)
