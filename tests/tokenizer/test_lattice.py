"""Every value of the lattice against brute-force enumeration of all partitions."""

import numpy as np
import pytest
from brute_force import log_sum, paper_viterbi
from hypothesis import given, settings
from lattice_cases import LABELS, base_cases, cases

from treepiece.tokenizer.lattice import one_hot
from treepiece.tokenizer.partitions import choose_best, read_partition
from treepiece.tokenizer.shape import PLACEHOLDER


@given(base_cases())
@settings(max_examples=40)
def test_best_score_is_that_of_the_papers_algorithm(case):
    best = case.lattice.evaluate(case.weights, np.maximum).node[case.root]
    assert best == pytest.approx(paper_viterbi(case.tree, LABELS, case.log_p))


@given(cases)
def test_inside_value(case):
    inside = case.lattice.evaluate(case.weights, np.logaddexp).node[case.root]
    assert inside == pytest.approx(log_sum([score for score, _ in case.all]))


def unit_counts(case, posterior):
    counts = np.zeros(len(case.shapes))
    places = {shape: place for place, shape in enumerate(case.shapes)}
    for pieces, share in posterior.items():
        for shape in pieces:
            unit = shape if shape in places else tuple(token for token in shape if token != PLACEHOLDER)
            counts[places[unit]] += share
    return counts


@given(cases)
def test_expected_counts(case):
    probabilities = case.lattice.edge_probabilities(case.lattice.evaluate(case.weights, np.logaddexp))
    counts = case.lattice.expected_counts(probabilities, np.array([case.root]), np.array([3.0]), len(case.shapes))
    assert counts == pytest.approx(3 * unit_counts(case, case.posterior()))


@given(cases)
def test_counts_of_the_best_partition(case):
    best = case.lattice.best_edges(case.lattice.evaluate(case.weights, np.maximum))
    probabilities = one_hot(best, len(case.lattice.unit))
    counts = case.lattice.expected_counts(probabilities, np.array([case.root]), np.array([1.0]), len(case.shapes))
    partition = read_partition(case.lattice, case.root, choose_best(case.lattice, case.weights))
    assert counts.tolist() == np.bincount([unit for unit, _ in partition], minlength=len(case.shapes)).tolist()


@given(cases)
@settings(max_examples=15)
def test_sampled_counts_approach_the_expectation(case):
    n = 4000.0
    probabilities = case.lattice.edge_probabilities(case.lattice.evaluate(case.weights, np.logaddexp))
    rng = np.random.default_rng(0)
    roots = np.array([case.root])
    sampled = case.lattice.sampled_counts(probabilities, roots, np.array([n]), len(case.shapes), rng) / n
    expected = case.lattice.expected_counts(probabilities, roots, np.array([1.0]), len(case.shapes))
    assert sampled == pytest.approx(expected, abs=0.12)
