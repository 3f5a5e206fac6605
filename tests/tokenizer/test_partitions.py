"""Best partitions, n-best lists and samples against brute-force enumeration of all partitions."""

import math
from collections import Counter

import numpy as np
from brute_force import scored_partitions
from hypothesis import given, settings
from hypothesis import strategies as st
from lattice_cases import LABELS, cases, placeholder_cases

from treepiece.tokenizer.partitions import choose_best, choose_random, nbest_partitions, read_partition
from treepiece.tokenizer.shape import PLACEHOLDER


@given(cases)
def test_best_score_and_partition(case):
    best = case.lattice.evaluate(case.weights, np.maximum).node[case.root]
    assert best == case.all[0][0]
    pieces = case.pieces(read_partition(case.lattice, case.root, choose_best(case.lattice, case.weights)))
    assert (best, pieces) in [(score, found) for score, found in case.all]


@given(cases, st.integers(1, 40))
def test_nbest_are_the_best_in_order_and_different(case, n):
    found = nbest_partitions(case.lattice, case.root, case.weights, n)
    assert [score for score, _ in found] == [score for score, _ in case.all[:n]]
    texts = [tuple(case.pieces(partition)) for _, partition in found]
    assert len(set(texts)) == len(texts)
    every = {tuple(pieces): score for score, pieces in case.all}
    assert all(every[text] == score for text, (score, _) in zip(texts, found, strict=True))
    assert found[0][1] == read_partition(case.lattice, case.root, choose_best(case.lattice, case.weights))


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
    choose = choose_random(
        lattice, lattice.edge_probabilities(lattice.evaluate(case.weights * theta, np.logaddexp)), rng
    )
    samples = [tuple(case.pieces(read_partition(lattice, case.root, choose))) for _ in range(3000)]
    assert distance(samples, case.posterior(theta)) < 0.03 + 0.01 * math.sqrt(len(case.all))


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
    choose = choose_random(lattice, lattice.tempered_probabilities(scores, theta), np.random.default_rng(0))
    samples = [tuple(case.pieces(read_partition(lattice, case.root, choose))) for _ in range(3000)]
    assert distance(samples, expected) < 0.03 + 0.01 * math.sqrt(len(case.all))


def _cut_off(tree, shape):
    """Yield the subtrees that a unit with placeholders at the root cuts off."""
    path = []
    for token in shape:
        if token == PLACEHOLDER:
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
