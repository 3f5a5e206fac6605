from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import corpora

from treepiece.errors import OptionError
from treepiece.tokenizer.em import EmConfig, EmMethod, fit_units, log_on_grid, normalise
from treepiece.tokenizer.learning import match_corpus
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.merges import learn_merges


def run(corpus, config, n_merges=8):
    base = learn_merges(corpus, n_merges)
    problem = match_corpus(corpus, Matcher(base.shapes, cut_anywhere=True))
    is_label = np.arange(len(base.shapes)) < base.n_labels
    return (
        problem,
        is_label,
        fit_units(problem, np.array(base.counts, float), is_label, config, np.random.default_rng(0)),
    )


@given(corpora(max_trees=8), st.sampled_from([EmMethod.VITERBI, EmMethod.EXACT]))
def test_the_objective_never_falls(corpus, method):
    problem, _, fit = run(corpus, EmConfig(method, iterations=15, epsilon=0.0))
    falls = [before - after for before, after in pairwise(fit.objectives)]
    assert max(falls, default=0.0) <= 1e-9 * abs(fit.objectives[-1])  # but for the rounding of log_p
    combine = np.maximum if method is EmMethod.VITERBI else np.logaddexp
    after = problem.lattice.evaluate(fit.log_p, combine).node[problem.roots] @ problem.counts
    assert after >= fit.objectives[-1] - 1e-6


@given(corpora(max_trees=8), st.sampled_from(EmMethod))
def test_the_result_is_a_simplex_in_which_labels_keep_a_floor(corpus, method):
    _, is_label, fit = run(corpus, EmConfig(method))
    assert np.exp(fit.log_p).sum() == pytest.approx(1.0, abs=1e-6)
    assert (fit.log_p[is_label] > -np.inf).all()


@given(corpora())
def test_sampled_em_is_reproducible(corpus):
    first, second = (run(corpus, EmConfig(EmMethod.SAMPLED, iterations=3))[2] for _ in range(2))
    assert first.objectives == second.objectives
    assert first.log_p.tolist() == second.log_p.tolist()


@given(st.lists(st.integers(0, 50), min_size=2, max_size=6).filter(any), st.floats(0.001, 0.1), st.data())
def test_the_m_step_is_the_best_simplex_above_the_floor(counts, floor, data):
    counts = np.array(counts, float)
    floored = np.array(data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts))))
    p = normalise(counts, floored, floor)
    assert p.sum() == pytest.approx(1.0)
    assert (p[floored] >= floor * (1 - 1e-9)).all()
    # no exchange of a little probability between two units that keeps the floor is better
    for giver in np.flatnonzero(p > np.where(floored, floor, 0.0) + 1e-6):
        for taker in range(len(p)):
            moved = p.copy()
            moved[giver] -= 1e-7
            moved[taker] += 1e-7
            used = counts > 0
            assert counts[used] @ np.log(moved[used]) <= counts[used] @ np.log(p[used]) + 1e-9


def test_log_on_grid_makes_sums_exact():
    values = log_on_grid(np.random.default_rng(0).random(1000))
    assert sum(values.tolist()) == sum(reversed(values.tolist())) == np.sum(values)


@pytest.mark.parametrize(
    "bad",
    [{"iterations": 0}, {"iterations": 2.5}, {"epsilon": float("nan")}, {"epsilon": -1.0}, {"samples": -3}],
)
def test_bad_options(bad):
    with pytest.raises(OptionError, match=next(iter(bad))):
        EmConfig(**bad)
