"""From units without placeholders to the vocabulary that encodes (Appendix D of the paper).

Where a node loses a child in a partition, a placeholder stands in the child's place: the pattern of a piece. Two ways
to choose which patterns become units:

- `paper`: the units found so far and every pattern in K0 sampled partitions of each training tree (theta0; with no
  samples, in its best partition). A tree that needs any other pattern cannot be encoded.
- `default`: the patterns that occur at least `min_count` times in best partitions, and for each label the bare patterns
  `[X _ ... _ ]` up to its largest number of children in training. Fewer units, and every tree can be encoded.

Both add `[<continuation> _ _ ]` and so on, which fold nodes that are wider than any seen (see `folding`).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from treepiece.tokenizer.corpus import Corpus
from treepiece.tokenizer.em import Problem
from treepiece.tokenizer.folding import CONTINUATION
from treepiece.tokenizer.lattice import Floats
from treepiece.tokenizer.merges import BaseVocabulary
from treepiece.tokenizer.partition import Choose, choose_best, choose_random, read_partition
from treepiece.tokenizer.shape import Shape, bare, with_holes


def best_patterns(problem: Problem, base: BaseVocabulary, log_p: Floats) -> Counter[Shape]:
    """Return how often each pattern occurs in the best partitions."""
    return _count_patterns(problem, base, choose_best(problem.lattice, log_p), samples=1)


def sampled_patterns(
    problem: Problem, base: BaseVocabulary, log_p: Floats, samples: int, theta: float, rng: np.random.Generator
) -> Counter[Shape]:
    """Return how often each pattern occurs in `samples` random partitions of each tree, drawn as in the paper."""
    lattice = problem.lattice
    shares = lattice.sharpened_shares(lattice.evaluate(log_p, np.logaddexp), theta)
    return _count_patterns(problem, base, choose_random(lattice, shares, rng), samples)


def _count_patterns(problem: Problem, base: BaseVocabulary, choose: Choose, samples: int) -> Counter[Shape]:
    pieces: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for root, count in zip(problem.roots.tolist(), problem.counts.tolist(), strict=True):
        for _ in range(samples):
            for piece in read_partition(problem.lattice, root, choose):
                pieces[piece] += int(count)
    patterns: Counter[Shape] = Counter()
    for (unit, slots), count in pieces.items():
        patterns[with_holes(base.shapes[unit], slots)] += count
    return patterns


def bare_patterns(corpus: Corpus) -> set[Shape]:
    """Return `[X ]`, `[X _ ]` and so on for each label X, up to its largest number of children in the corpus."""
    return {
        bare(label, n_children)
        for label, (name, most) in enumerate(_widest(corpus).items())
        if name != CONTINUATION
        for n_children in range(most + 1)
    }


def continuation_patterns(corpus: Corpus) -> set[Shape]:
    """Return the units that fold nodes: two to as many placeholders as the widest node of the corpus has children."""
    widest = max(_widest(corpus).values())
    n_others = len(corpus.labels) - (CONTINUATION in corpus.labels)
    return {bare(n_others, n_children) for n_children in range(2, max(widest, 2) + 1)}


def _widest(corpus: Corpus) -> dict[str, int]:
    most = dict.fromkeys(corpus.labels, 0)
    for tree in corpus.trees:
        for node in tree.nodes():
            most[node.label] = max(most[node.label], len(node.children))
    return most
