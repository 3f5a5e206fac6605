"""A ranker moves probability between the candidates of a beam, and nothing else."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treepiece.decoding.ranking import rerank
from treepiece.decoding.search import Candidate
from treepiece.trees.node import Node

beams = st.lists(
    st.tuples(st.floats(1e-6, 1), st.floats(-20, 20)).map(lambda pair: (math.log(pair[0] / 8), pair[1])),
    min_size=1,
    max_size=8,
)


def candidates(log_p):
    return [Candidate(Node(f"IN:{place}"), (place,), value) for place, value in enumerate(log_p)]


@given(beams)
def test_the_beam_is_as_probable_as_before(pairs):
    before = candidates([log_p for log_p, _ in pairs])
    after = rerank(before, [score for _, score in pairs])
    totals = [np.logaddexp.reduce([candidate.log_p for candidate in few]) for few in (before, after)]
    assert totals[1] == pytest.approx(totals[0], abs=1e-9)
    assert [candidate.skeleton for candidate in after] == [candidate.skeleton for candidate in before]


@given(beams)
def test_two_candidates_part_by_what_their_scores_do(pairs):
    before = candidates([log_p for log_p, _ in pairs])
    after = rerank(before, [score for _, score in pairs])
    for one, other, (_, score), (_, less) in zip(before, after, pairs, pairs[:1] * len(pairs), strict=True):
        moved = (other.log_p - after[0].log_p) - (one.log_p - before[0].log_p)
        assert moved == pytest.approx(score - less, abs=1e-9)


@given(beams, st.sampled_from([0.0, math.nan, math.inf, -math.inf]))
def test_scores_that_say_nothing_change_nothing(pairs, score):
    before = candidates([log_p for log_p, _ in pairs])
    after = rerank(before, [score] * len(before))
    assert [c.log_p for c in after] == pytest.approx([c.log_p for c in before], abs=1e-9)
