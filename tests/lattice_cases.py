"""Random trees with random vocabularies: the lattice, and all partitions by brute-force enumeration."""

import math

import numpy as np
from brute_force import log_sum, partitions, scored_partitions
from hypothesis import strategies as st
from strategies import corpora, trees

from treepiece.tokenizer.corpus import Forest
from treepiece.tokenizer.em import log_on_grid
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.merges import learn_merges
from treepiece.tokenizer.shape import PLACEHOLDER, insert_placeholders

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
            insert_placeholders(self.shapes[unit], positions)
            if PLACEHOLDER not in self.shapes[unit]
            else self.shapes[unit]
            for unit, positions in partition
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
    return list(partitions(tree, LABELS))


cases = st.one_of(base_cases(), placeholder_cases())
