import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treepiece.data.toy import toy_frames
from treepiece.decoding.linearization import TokenGrammar, TokenState, TokenVocabulary
from treepiece.decoding.search import beam_search, label_pairs, log_softmax
from treepiece.errors import OptionError
from treepiece.trees.frame import Frame, leaf_labels

FRAMES = list(toy_frames(300))
PAIRS = label_pairs(frame.skeleton for frame in FRAMES)
VOCABULARY = TokenVocabulary(sorted({child for _, child in PAIRS}))
GRAMMAR = TokenGrammar(VOCABULARY, PAIRS, budget=64)


def test_what_was_written_is_read_and_was_allowed():
    for frame in FRAMES:
        tokens = VOCABULARY.write(frame.skeleton, frame.spans)
        assert VOCABULARY.read(tokens) == (frame.skeleton, list(frame.spans))
        state = TokenState(len(frame.words))
        for token in tokens:
            assert GRAMMAR.allowed(state)[token]
            assert not state.is_complete
            state = GRAMMAR.extend(state, token, 0.0)
        assert state.is_complete


@given(st.integers(0, 10_000), st.integers(0, 5), st.integers(1, 3), st.integers(4, 40), st.floats(0, 30))
@settings(max_examples=80)
def test_random_scores_give_valid_frames_within_the_budget(seed, n_subwords, beam, budget, scale):
    rng = np.random.default_rng(seed)
    grammar = TokenGrammar(VOCABULARY, PAIRS, budget=budget)
    score = lambda rows: rng.normal(size=(len(rows), VOCABULARY.first_pointer + 5)) * scale  # noqa: E731
    for states in beam_search([TokenState(n_subwords), TokenState(5)], score, grammar, beam=beam):
        assert 1 <= len(states) <= beam
        for state in states:
            skeleton, spans = VOCABULARY.read(state.tokens)
            assert len(state.tokens) <= budget
            assert label_pairs([skeleton]) <= PAIRS
            assert len(spans) == len(leaf_labels(skeleton))
            Frame(tuple("w" * state.n_subwords), skeleton, tuple(spans), " ".join("w" * state.n_subwords))


def test_a_slot_points_while_there_is_something_to_point_at():
    """Scores that prefer the closing bracket, then slots, must still point first."""
    row = np.zeros(VOCABULARY.first_pointer + 3)
    row[: VOCABULARY.close] = VOCABULARY.is_slot
    row[VOCABULARY.close] = 0.5
    for n_subwords in (0, 3):
        grammar = TokenGrammar(VOCABULARY, PAIRS, budget=12)
        ((state,),) = beam_search([TokenState(n_subwords)], lambda rows: np.tile(row, (len(rows), 1)), grammar)
        _, spans = VOCABULARY.read(state.tokens)
        assert spans
        assert (spans[0].start < spans[0].end) == (n_subwords > 0)


def test_probabilities_of_all_frames_add_up_to_one():
    vocabulary = TokenVocabulary(["IN:A", "SL:B"])
    grammar = TokenGrammar(vocabulary, [(None, "IN:A"), ("IN:A", "SL:B"), ("SL:B", "IN:A")], budget=10)

    def score(rows):
        return np.array([np.random.default_rng([7, *state.tokens]).normal(size=5) for _, state in rows])

    total, todo = 0.0, [TokenState(2)]
    n_complete = 0
    while todo:
        state = todo.pop()
        if state.is_complete:
            total += math.exp(state.log_p)
            n_complete += 1
            continue
        allowed = grammar.allowed(state)
        log_p = log_softmax(score([(0, state)]), allowed[None])[0]
        todo += [grammar.extend(state, int(token), float(log_p[token])) for token in np.flatnonzero(allowed)]
    assert total == pytest.approx(1.0)
    (found,) = beam_search([TokenState(2)], score, grammar, beam=n_complete)
    assert sum(math.exp(state.log_p) for state in found) == pytest.approx(1.0)


def test_bad_options():
    with pytest.raises(OptionError, match="a budget of 4 tokens, got 3"):
        TokenGrammar(VOCABULARY, PAIRS, budget=3)
    with pytest.raises(OptionError, match="needs a label for its root"):
        TokenGrammar(VOCABULARY, [], budget=9)
    with pytest.raises(OptionError, match="the tokens end before the tree is closed"):
        VOCABULARY.read([0])
