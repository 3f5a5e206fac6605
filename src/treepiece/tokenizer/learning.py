"""Training of a tokenizer: its configuration, and the stages from a corpus to a vocabulary.

The stages are those of the paper. Merging gives units without placeholders (`merges`), EM gives them probabilities
(`em`), and the expansion adds placeholder patterns (Appendix D of the paper). Where a node loses a child in a
partition, a placeholder takes the place of the child; the result is a pattern such as `[A [B ] _ ]`. There are three
expansions:

- `paper`: the units without placeholders and all patterns in K0 sampled partitions of each training tree (theta0), or
  in its best partition if there are no samples. A tree that needs another pattern cannot be encoded.
- `default`: the patterns that occur at least `min_count` times in best partitions, and for each label the bare patterns
  `[X _ ... _ ]` up to its largest number of children in training. Fewer units, and every tree can be encoded. EM then
  runs once more, on these units.
- `whole`: as `default`, but without patterns that keep some children and lose others: a unit is a whole subtree or a
  bare pattern. These are half as many units, each in more rows, so that a parser learns better how to join them.

All add `[<continuation> _ _ ]` and wider ones, for nodes wider than any in training (see `folding`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from treepiece.checks import one_of, whole_number
from treepiece.errors import OptionError
from treepiece.tokenizer.corpus import Corpus, Forest
from treepiece.tokenizer.em import CorpusLattice, EmConfig, EmMethod, EmResult, fit_units
from treepiece.tokenizer.folding import CONTINUATION, folds_properly
from treepiece.tokenizer.lattice import Floats
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.merges import BaseVocabulary, learn_merges
from treepiece.tokenizer.partitions import Choose, Piece, choose_best, choose_sampled, read_partition
from treepiece.tokenizer.shape import PLACEHOLDER, Shape, bare, build_node, insert_placeholders, remove_placeholders
from treepiece.tokenizer.vocabulary import Vocabulary, format_unit

_MAX_THETA = 1_000_000


class Expansion(StrEnum):
    """Which placeholder patterns become units."""

    DEFAULT = "default"
    WHOLE = "whole"
    PAPER = "paper"


@dataclass(frozen=True)
class TokenizerConfig:
    """Settings of `TreePieceTokenizer.train`; the defaults are the paper's values where it states them.

    `samples` and `theta` are K0 and theta0 of the `paper` expansion (0 samples: best partitions only); `samples` is
    also K of `sampled` EM. `min_count` is for the other expansions.
    """

    merges: int = 600
    em: EmMethod = EmMethod.VITERBI
    em_iterations: int = 30
    em_epsilon: float = 0.01
    expansion: Expansion = Expansion.DEFAULT
    samples: int = 10
    theta: float = 0.15
    min_count: int = 3
    seed: int = 0

    __pydantic_config__ = {"extra": "forbid", "strict": True}  # noqa: RUF012  # it is part of recipes

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "em", one_of("em", self.em, EmMethod))
        set_(self, "expansion", one_of("expansion", self.expansion, Expansion))
        set_(self, "merges", whole_number("merges", self.merges, 0))
        set_(self, "samples", whole_number("samples", self.samples, 0, 1000))
        set_(self, "min_count", whole_number("min_count", self.min_count, 1))
        set_(self, "seed", whole_number("seed", self.seed, 0))
        check_theta(self.theta)
        _ = self.em_config

    @property
    def em_config(self) -> EmConfig:
        """The settings of EM alone."""
        return EmConfig(self.em, self.em_iterations, self.em_epsilon, max(self.samples, 1))


def check_theta(theta: float) -> None:
    """Raise unless `theta` is a valid sampling coefficient; at the bound only the best partition is left."""
    if not (isinstance(theta, int | float | np.number) and 0 <= theta <= _MAX_THETA):
        raise OptionError(f"theta must be a number from 0 to {_MAX_THETA:,}, got {theta!r}")


class Merge(NamedTuple):
    """A unit that was merged, as bracket text, and how often it occurred."""

    unit: str
    frequency: int


@dataclass(frozen=True)
class TrainingReport:
    """A report of training: the merges in order, and the objective of each EM iteration before the expansion.

    `merges` is empty for a tokenizer that was saved without them.
    """

    n_labels: int
    n_merges: int
    base_units: int
    em_objectives: tuple[float, ...]
    merges: tuple[Merge, ...] = ()


OnProgress = Callable[[str, int, int], None]
"""Called with the name of a stage, the steps done, and the steps in total."""


def train_vocabulary(
    corpus: Corpus, config: TokenizerConfig, on_progress: OnProgress | None = None
) -> tuple[Vocabulary, TrainingReport]:
    """Return the vocabulary of a corpus, and the report of training."""
    report_to = on_progress or (lambda stage, done, total: None)
    rng = np.random.default_rng(config.seed)
    base = learn_merges(corpus, config.merges, lambda done: report_to("merges", done, config.merges))
    lattice = match_corpus(corpus, Matcher(base.shapes, cut_anywhere=True))
    is_label = np.arange(len(base.shapes)) < base.n_labels
    fit = fit_units(
        lattice,
        np.array(base.counts, float),
        is_label,
        config.em_config,
        rng,
        lambda done: report_to("EM", done, config.em_iterations),
    )
    report_to("units", 0, 1)
    if config.expansion is Expansion.PAPER:
        # The paper's theta sharpens each step.
        choose = choose_sampled(lattice.lattice, fit.log_p, config.theta, rng, local=True) if config.samples else None
        patterns = count_patterns(lattice, base, fit.log_p, choose, max(config.samples, 1))
        log_p = _paper_units(corpus, base, fit, patterns)
    else:
        log_p = _default_units(corpus, count_patterns(lattice, base, fit.log_p), config, rng)
    report_to("units", 1, 1)
    shapes = sorted(log_p, key=lambda shape: (-log_p[shape], len(shape), shape))
    labels = tuple(dict.fromkeys((*corpus.labels, CONTINUATION)))
    vocabulary = Vocabulary(labels, tuple(shapes), tuple(log_p[shape] for shape in shapes))
    return vocabulary, _report(base, fit, labels)


def _report(base: BaseVocabulary, fit: EmResult, labels: tuple[str, ...]) -> TrainingReport:
    merged = zip(base.shapes[base.n_labels :], base.counts[base.n_labels :], strict=True)
    merges = tuple(Merge(format_unit(build_node(shape, labels)), count) for shape, count in merged)
    n_labels = len(labels) - 1  # without the continuation label
    return TrainingReport(n_labels, len(merges), n_labels + len(merges), fit.objectives, merges)


def match_corpus(corpus: Corpus, matcher: Matcher) -> CorpusLattice:
    """Return the lattice of the trees of a corpus."""
    forest = Forest({label: number for number, label in enumerate(corpus.labels)})
    trees = [forest.add(tree) for tree in corpus.trees]
    lattice, nodes = matcher.match(forest)
    return CorpusLattice(lattice, np.array([nodes[tree] for tree in trees]), np.array(corpus.counts, float))


def count_patterns(
    corpus: CorpusLattice, base: BaseVocabulary, log_p: Floats, choose: Choose | None = None, samples: int = 1
) -> Counter[Shape]:
    """Return the count of each pattern in `samples` partitions of each tree; by default, in the best one."""
    choose = choose or choose_best(corpus.lattice, log_p)
    pieces: Counter[Piece] = Counter()
    for root, count in zip(corpus.roots.tolist(), corpus.counts.tolist(), strict=True):
        for _ in range(samples):
            for piece in read_partition(corpus.lattice, root, choose):
                pieces[piece] += int(count)
    patterns: Counter[Shape] = Counter()
    for (unit, positions), count in pieces.items():
        patterns[insert_placeholders(base.shapes[unit], positions)] += count
    return patterns


def _default_units(
    corpus: Corpus, patterns: Counter[Shape], config: TokenizerConfig, rng: np.random.Generator
) -> dict[Shape, float]:
    """Return the units of the `default` or `whole` expansion with their log-probabilities, from EM on these units."""
    frequent = {shape for shape, count in patterns.items() if count >= config.min_count}
    if config.expansion is Expansion.WHOLE:
        frequent = {shape for shape in frequent if PLACEHOLDER not in shape}
    widest = _widest(corpus)
    bare_patterns = {
        bare(label, n_children)
        for label, (name, most) in enumerate(widest.items())
        if name != CONTINUATION
        for n_children in range(most + 1)
    }
    shapes = sorted(frequent | bare_patterns | _continuation_patterns(widest))
    counts = np.array([max(patterns[shape], 1) for shape in shapes], float)
    floored = np.ones(len(shapes), bool)
    refit = fit_units(match_corpus(corpus, Matcher(shapes, cut_anywhere=False)), counts, floored, config.em_config, rng)
    return dict(zip(shapes, refit.log_p.tolist(), strict=True))


def _paper_units(corpus: Corpus, base: BaseVocabulary, fit: EmResult, patterns: Counter[Shape]) -> dict[Shape, float]:
    """Return the units of the paper's expansion; a pattern has the log-probability of its unit without placeholders."""
    log_p = dict(zip(base.shapes, fit.log_p.tolist(), strict=True))
    rarest = min(value for value in log_p.values() if value > -np.inf)
    result = {shape: log_p[remove_placeholders(shape)] for shape in {*patterns, *base.shapes}}
    result |= dict.fromkeys(_continuation_patterns(_widest(corpus)), rarest)
    # A unit of probability zero is in no partition, so it would only waste an id.
    continuation = len(corpus.labels) - (CONTINUATION in corpus.labels)
    return {shape: value for shape, value in result.items() if value > -np.inf and folds_properly(shape, continuation)}


def _continuation_patterns(widest: Mapping[str, int]) -> set[Shape]:
    """Return the units of continuation nodes: from two placeholders to the width of the widest node of the corpus."""
    n_others = len(widest) - (CONTINUATION in widest)
    return {bare(n_others, n_children) for n_children in range(2, max(2, *widest.values()) + 1)}


def _widest(corpus: Corpus) -> dict[str, int]:
    """Return the largest number of children that nodes of each label have."""
    most = dict.fromkeys(corpus.labels, 0)
    for tree in corpus.trees:
        for node in tree.nodes():
            most[node.label] = max(most[node.label], len(node.children))
    return most
