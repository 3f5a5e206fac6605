"""Every reading of the lattice against brute-force enumeration of all partitions."""

import math
from collections import Counter

import numpy as np
import pytest
from brute_force import log_sum, paper_viterbi, scored_partitions
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import corpora, trees

from treepiece.tokenizer.em import log_on_grid
from treepiece.tokenizer.forest import Forest
from treepiece.tokenizer.lattice import one_hot
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.merges import learn_merges
from treepiece.tokenizer.nbest import nbest_partitions
from treepiece.tokenizer.partition import choose_best, choose_random, read_partition
from treepiece.tokenizer.shape import HOLE, with_holes
from treepiece.trees.brackets import parse_brackets

LABELS = {"A": 0, "B": 1, "C": 2}


class Case:
    """A tree, a vocabulary with random probabilities, the lattice, and all partitions by enumeration."""

    def __init__(self, tree, shapes, seed, *, cut_anywhere):
        self.shapes = shapes
        self.tree = tree
        self.weights = log_on_grid(np.random.default_rng(seed).dirichlet(np.ones(len(shapes))))
        self.log_p = dict(zip(shapes, self.weights.tolist(), strict=True))
        forest = Forest(LABELS)
        number = forest.add(tree)
        self.lattice, nodes = Matcher(shapes, cut_anywhere=cut_anywhere).match(forest)
        self.root = nodes[number]
        self.all = scored_partitions(tree, LABELS, self.log_p, with_placeholders=not cut_anywhere)

    def pieces(self, partition):
        """Return a partition as brute force writes it: shapes with their placeholders."""
        return [
            with_holes(self.shapes[unit], slots) if HOLE not in self.shapes[unit] else self.shapes[unit]
            for unit, slots in partition
        ]

    def posterior(self, theta=1.0):
        total = log_sum([theta * score for score, _ in self.all])
        return {tuple(pieces): math.exp(theta * score - total) for score, pieces in self.all}


@st.composite
def base_cases(draw):
    tree = draw(trees(7))
    corpus = draw(corpora())
    shapes = learn_merges(corpus, draw(st.integers(0, 10))).shapes
    renamed = tuple(tuple(LABELS[corpus.labels[t]] if t >= 0 else t for t in shape) for shape in shapes)
    single = tuple((label, -1) for label in LABELS.values())
    return Case(tree, tuple(dict.fromkeys(single + renamed)), draw(st.integers(0, 99)), cut_anywhere=True)


@st.composite
def placeholder_cases(draw):
    tree = draw(trees(7))
    found = {shape for _ in range(3) for shape in draw(st.sampled_from(_all_patterns(tree)))}
    found |= set(draw(st.sampled_from(_all_patterns(draw(trees(5))))))
    return Case(tree, tuple(sorted(found)), draw(st.integers(0, 99)), cut_anywhere=False)


def _all_patterns(tree):
    from brute_force import partitions

    return list(partitions(tree, LABELS))


cases = st.one_of(base_cases(), placeholder_cases())


@given(cases)
def test_best_score_and_partition(case):
    best = case.lattice.evaluate(case.weights, np.maximum).node[case.root]
    assert best == case.all[0][0]
    pieces = case.pieces(read_partition(case.lattice, case.root, choose_best(case.lattice, case.weights)))
    assert (best, pieces) in [(score, found) for score, found in case.all]


@given(base_cases())
@settings(max_examples=40)
def test_best_score_is_that_of_the_papers_algorithm(case):
    best = case.lattice.evaluate(case.weights, np.maximum).node[case.root]
    assert best == pytest.approx(paper_viterbi(case.tree, LABELS, case.log_p))


@given(cases)
def test_inside_value(case):
    inside = case.lattice.evaluate(case.weights, np.logaddexp).node[case.root]
    assert inside == pytest.approx(log_sum([score for score, _ in case.all]))


@given(cases, st.integers(1, 40))
def test_nbest_are_the_best_in_order_and_different(case, n):
    found = nbest_partitions(case.lattice, case.root, case.weights, n)
    assert [score for score, _ in found] == [score for score, _ in case.all[:n]]
    texts = [tuple(case.pieces(partition)) for _, partition in found]
    assert len(set(texts)) == len(texts)
    every = {tuple(pieces): score for score, pieces in case.all}
    assert all(every[text] == score for text, (score, _) in zip(texts, found, strict=True))
    assert found[0][1] == read_partition(case.lattice, case.root, choose_best(case.lattice, case.weights))


def unit_counts(case, posterior):
    counts = np.zeros(len(case.shapes))
    places = {shape: place for place, shape in enumerate(case.shapes)}
    for pieces, share in posterior.items():
        for shape in pieces:
            unit = shape if shape in places else tuple(token for token in shape if token != HOLE)
            counts[places[unit]] += share
    return counts


@given(cases)
def test_expected_counts(case):
    shares = case.lattice.shares(case.lattice.evaluate(case.weights, np.logaddexp))
    counts = case.lattice.expected_counts(shares, np.array([case.root]), np.array([3.0]), len(case.shapes))
    assert counts == pytest.approx(3 * unit_counts(case, case.posterior()))


@given(cases)
def test_counts_of_the_best_partition(case):
    best = case.lattice.best_edges(case.lattice.evaluate(case.weights, np.maximum))
    shares = one_hot(best, len(case.lattice.unit))
    counts = case.lattice.expected_counts(shares, np.array([case.root]), np.array([1.0]), len(case.shapes))
    partition = read_partition(case.lattice, case.root, choose_best(case.lattice, case.weights))
    assert counts.tolist() == np.bincount([unit for unit, _ in partition], minlength=len(case.shapes)).tolist()


def distance(samples, posterior):
    """Return the total variation distance of sample frequencies from a distribution."""
    frequencies = Counter(samples)
    assert set(frequencies) <= set(posterior)
    return sum(abs(frequencies[key] / len(samples) - p) for key, p in posterior.items()) / 2


@given(cases, st.sampled_from([0.0, 0.3, 1.0, 2.0]))
@settings(max_examples=15)
def test_samples_follow_the_posterior_to_the_power_theta(case, theta):
    lattice = case.lattice
    rng = np.random.default_rng(0)
    choose = choose_random(lattice, lattice.shares(lattice.evaluate(case.weights * theta, np.logaddexp)), rng)
    samples = [tuple(case.pieces(read_partition(lattice, case.root, choose))) for _ in range(3000)]
    assert distance(samples, case.posterior(theta)) < 0.03 + 0.01 * math.sqrt(len(case.all))


@given(cases)
@settings(max_examples=15)
def test_sampled_counts_approach_the_expectation(case):
    n = 4000.0
    shares = case.lattice.shares(case.lattice.evaluate(case.weights, np.logaddexp))
    rng = np.random.default_rng(0)
    roots = np.array([case.root])
    sampled = case.lattice.sampled_counts(shares, roots, np.array([n]), len(case.shapes), rng) / n
    expected = case.lattice.expected_counts(shares, roots, np.array([1.0]), len(case.shapes))
    assert sampled == pytest.approx(expected, abs=0.12)


@given(placeholder_cases(), st.sampled_from([0.0, 0.5, 3.0]))
@settings(max_examples=15)
def test_local_theta_sharpens_each_step(case, theta):
    """At each node a unit is drawn with its share to the power theta: checked with a recursion of its own."""
    lattice = case.lattice

    def local(tree):
        scored = scored_partitions(tree, LABELS, case.log_p, with_placeholders=True)
        weight = Counter()
        rest = {}
        for score, pieces in scored:
            weight[pieces[0]] += math.exp(score)
            rest[pieces[0]] = list(_cut_off(tree, pieces[0]))
        total = sum(w**theta for w in weight.values())
        for unit, w in weight.items():
            tails = [([], 1.0)]
            for sub in rest[unit]:
                tails = [(p + q, a * b) for p, a in tails for q, b in local(sub)]
            for pieces, share in tails:
                yield [unit, *pieces], w**theta / total * share

    expected = {tuple(pieces): share for pieces, share in local(case.tree)}
    scores = lattice.evaluate(case.weights, np.logaddexp)
    choose = choose_random(lattice, lattice.sharpened_shares(scores, theta), np.random.default_rng(0))
    samples = [tuple(case.pieces(read_partition(lattice, case.root, choose))) for _ in range(3000)]
    assert distance(samples, expected) < 0.03 + 0.01 * math.sqrt(len(case.all))


def _cut_off(tree, shape):
    """Yield the subtrees that a unit with placeholders at the root cuts off."""
    path = []
    for token in shape:
        if token == HOLE:
            node, done = path[-1]
            yield node.children[done]
            path[-1] = (node, done + 1)
        elif token >= 0:
            if path:
                node, done = path[-1]
                path[-1] = (node, done + 1)
                path.append((node.children[done], 0))
            else:
                path.append((tree, 0))
        else:
            path.pop()


def test_a_wide_node_with_equal_children_counts_every_way():
    """[A [B ] [B ] ] lies on an A with 40 Bs in 40 * 39 / 2 ways, and [A [B ] ] in 40."""
    tree = parse_brackets("[A " + "[B ] " * 40 + "]", any_label=True)
    shapes = ((0, -1), (1, -1), (0, 1, -1, -1), (0, 1, -1, 1, -1, -1))
    forest = Forest(LABELS)
    number = forest.add(tree)
    lattice, nodes = Matcher(shapes, cut_anywhere=True).match(forest)
    inside = lattice.evaluate(np.zeros(len(shapes)), np.logaddexp).node[nodes[number]]
    assert math.exp(inside) == pytest.approx(1 + 40 + 780)
