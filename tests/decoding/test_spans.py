from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from treepiece.decoding.spans import best_spans


def every_choice(n_leaves, n_tokens):
    """Yield all ordered spans that do not overlap and are not empty."""
    single = [(s, e) for s in range(n_tokens) for e in range(s + 1, n_tokens + 1)]
    for spans in product(single, repeat=n_leaves):
        if all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False)):
            yield spans


@given(st.integers(0, 3), st.integers(1, 5), st.integers(0, 1000))
def test_the_best_of_all_choices(n_leaves, n_tokens, seed):
    rng = np.random.default_rng(seed)
    starts, ends = rng.integers(-5, 6, size=(2, n_leaves, n_tokens)).astype(float)
    spans, each = best_spans(starts, ends)
    assert len(spans) == len(each) == n_leaves
    scores = [
        sum(starts[leaf, s] + ends[leaf, e - 1] for leaf, (s, e) in enumerate(choice))
        for choice in every_choice(n_leaves, n_tokens)
    ]
    if scores:
        assert sum(each) == max(scores)
        assert [starts[leaf, s] + ends[leaf, e - 1] for leaf, (s, e) in enumerate(spans)] == each


@given(
    st.integers(0, 12), st.integers(0, 6), st.sampled_from([0.0, np.nan, np.inf, -np.inf, 1e300]), st.integers(0, 99)
)
def test_spans_are_valid_whatever_the_scores(n_leaves, n_tokens, poison, seed):
    rng = np.random.default_rng(seed)
    starts, ends = rng.normal(size=(2, n_leaves, n_tokens))
    starts[rng.random(starts.shape) < 0.3] = poison
    spans, _ = best_spans(starts, ends)
    assert len(spans) == n_leaves
    end = 0
    for span in spans:
        assert end <= span.start <= span.end <= n_tokens
        end = span.end
    assert sum(span.start < span.end for span in spans) == min(n_leaves, n_tokens)


def test_half_precision_is_read():
    spans, _ = best_spans(np.ones((1, 2), np.float16), np.array([[0, 1]], np.float16))
    assert tuple(spans[0]) == (0, 2)
    assert best_spans(np.zeros((0, 4)), np.zeros((0, 4))) == ([], [])
