from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treepiece.decoding.linearization import TokenVocabulary
from treepiece.decoding.mask_predict import Token, best_frame_tokens, best_kinds
from treepiece.errors import OptionError
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node, is_slot

VOCABULARY = TokenVocabulary(["IN:A", "SL:B", "IN:C", "SL:D"])


def is_frame(kinds):
    """Say whether kinds make a frame without empty slots, by reading them with a stack."""
    path = []
    for place, kind in enumerate(kinds):
        if kind is Token.CLOSE:
            if not path:
                return False
            top, children, pointers = path.pop()
            if top is Token.SLOT and not (pointers == 2 or children):
                return False
            if not path and place < len(kinds) - 1:
                return False
            continue
        if kind is Token.POINT:
            if not path or path[-1][0] is not Token.SLOT or path[-1][1] or path[-1][2] == 2:
                return False
            path[-1][2] += 1
            continue
        wanted = Token.INTENT if not path or path[-1][0] is Token.SLOT else Token.SLOT
        if kind is not wanted or (path and path[-1][2]):
            return False
        if path:
            path[-1][1] += 1
        path.append([kind, 0, 0])
    return not path


@given(st.sampled_from([2, 6, 8]), st.integers(0, 1000))
@settings(max_examples=25)
def test_the_best_of_all_sequences_of_kinds(n, seed):
    scores = np.random.default_rng(seed).integers(-9, 10, size=(n, len(Token))).astype(float)
    best = max(
        sum(scores[place, kind] for place, kind in enumerate(kinds))
        for kinds in product(Token, repeat=n)
        if kinds[-1] is Token.CLOSE and is_frame(kinds)
    )
    found = best_kinds(scores)
    assert is_frame(found)
    assert sum(scores[place, kind] for place, kind in enumerate(found)) == best


@given(
    st.integers(1, 20),
    st.integers(0, 6),
    st.integers(0, 1000),
    st.sampled_from([0.0, 5.0, 1e300]),
    st.sampled_from([0.0, np.nan, np.inf, -np.inf]),
)
def test_any_scores_give_a_frame(half, n_subwords, seed, scale, poison):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(2 * half, VOCABULARY.first_pointer + n_subwords)) * scale
    logits[rng.random(logits.shape) < 0.2] = poison
    tokens = best_frame_tokens(logits, VOCABULARY)
    skeleton, spans = VOCABULARY.read(tokens)
    Frame(tuple("w" * n_subwords), skeleton, tuple(spans), " ".join("w" * n_subwords))
    assert not is_slot(skeleton.label)
    for node in skeleton.nodes():
        for child in node.children:
            assert isinstance(child, Node)
            assert is_slot(child.label) != is_slot(node.label)


def test_sure_scores_are_followed():
    tokens = [0, 1, VOCABULARY.first_pointer + 1, VOCABULARY.first_pointer + 2, 4, 3, 2, 4, 4, 4]
    logits = np.zeros((len(tokens), VOCABULARY.first_pointer + 4))
    logits[range(len(tokens)), tokens] = 5.0
    assert best_frame_tokens(logits, VOCABULARY) == tokens


@pytest.mark.parametrize("n", [0, 1, 3])
def test_lengths_that_no_frame_has(n):
    with pytest.raises(OptionError, match=f"an even number of tokens, 2 or more, got {n}"):
        best_frame_tokens(np.zeros((n, 9)), VOCABULARY)
