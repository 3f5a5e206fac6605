"""Learns a vocabulary from trees: merges, EM, expansion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from treepiece.tokenizer.config import Expansion, TokenizerConfig
from treepiece.tokenizer.corpus import Corpus
from treepiece.tokenizer.em import Fit, Problem, fit_units
from treepiece.tokenizer.expansion import bare_patterns, best_patterns, continuation_patterns, sampled_patterns
from treepiece.tokenizer.folding import CONTINUATION, folds_properly
from treepiece.tokenizer.forest import Forest
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.merges import BaseVocabulary, learn_merges
from treepiece.tokenizer.shape import Shape, without_holes
from treepiece.tokenizer.vocabulary import Vocabulary

OnProgress = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class TrainingReport:
    """What happened in training; `em_objectives` are those of each EM iteration on the units without placeholders."""

    n_labels: int
    n_merges: int
    base_units: int
    em_objectives: tuple[float, ...]


def train_vocabulary(
    corpus: Corpus, config: TokenizerConfig, on_progress: OnProgress | None = None
) -> tuple[Vocabulary, TrainingReport]:
    """Return the units that encode, and what happened on the way."""
    report_to = on_progress or (lambda stage, done, total: None)
    rng = np.random.default_rng(config.seed)
    base = learn_merges(corpus, config.merges, lambda done: report_to("merges", done, config.merges))
    problem = pose(corpus, Matcher(base.shapes, cut_anywhere=True))
    is_label = np.arange(len(base.shapes)) < base.n_labels
    fit = fit_units(
        problem,
        np.array(base.counts, float),
        is_label,
        config.em_config,
        rng,
        lambda done: report_to("EM", done, config.em_iterations),
    )
    report_to("units", 0, 1)
    if config.expansion is Expansion.PAPER:
        log_p = _expand_as_in_paper(corpus, problem, base, fit, config, rng)
    else:
        log_p = _expand(corpus, problem, base, fit, config, rng)
    report_to("units", 1, 1)
    shapes = sorted(log_p, key=lambda shape: (-log_p[shape], len(shape), shape))
    labels = dict.fromkeys((*corpus.labels, CONTINUATION))
    vocabulary = Vocabulary(tuple(labels), tuple(shapes), tuple(log_p[shape] for shape in shapes))
    n_merges = len(base.shapes) - base.n_labels
    n_labels = len(labels) - 1
    return vocabulary, TrainingReport(n_labels, n_merges, n_labels + n_merges, fit.objectives)


def pose(corpus: Corpus, matcher: Matcher) -> Problem:
    """Return what EM explains: the trees of a corpus, with all units of a matcher laid on them."""
    forest = Forest({label: number for number, label in enumerate(corpus.labels)})
    trees = [forest.add(tree) for tree in corpus.trees]
    lattice, nodes = matcher.match(forest)
    return Problem(lattice, np.array([nodes[tree] for tree in trees]), np.array(corpus.counts, float))


def _expand(
    corpus: Corpus, problem: Problem, base: BaseVocabulary, fit: Fit, config: TokenizerConfig, rng: np.random.Generator
) -> Mapping[Shape, float]:
    """Return the log-probabilities of the default expansion, fitted once more on the units that encode."""
    patterns = best_patterns(problem, base, fit.log_p)
    frequent = {shape for shape, count in patterns.items() if count >= config.min_count}
    shapes = sorted(frequent | bare_patterns(corpus) | continuation_patterns(corpus))
    counts = np.array([max(patterns[shape], 1) for shape in shapes], float)  # to start from; EM counts for itself
    all_floored = np.ones(len(shapes), bool)
    refit = fit_units(pose(corpus, Matcher(shapes, cut_anywhere=False)), counts, all_floored, config.em_config, rng)
    return dict(zip(shapes, refit.log_p.tolist(), strict=True))


def _expand_as_in_paper(
    corpus: Corpus, problem: Problem, base: BaseVocabulary, fit: Fit, config: TokenizerConfig, rng: np.random.Generator
) -> Mapping[Shape, float]:
    """Return the log-probabilities of the paper's expansion: a pattern has that of its unit without placeholders."""
    if config.samples:
        patterns = sampled_patterns(problem, base, fit.log_p, config.samples, config.theta, rng)
    else:
        patterns = best_patterns(problem, base, fit.log_p)
    log_p = dict(zip(base.shapes, fit.log_p.tolist(), strict=True))
    rarest = min(value for value in log_p.values() if value > -np.inf)
    result = {shape: log_p[without_holes(shape)] for shape in {*patterns, *base.shapes}}
    result |= dict.fromkeys(continuation_patterns(corpus), rarest)
    # What EM has driven to probability zero is in no partition, so it would only take up an id.
    continuation = len(corpus.labels) - (CONTINUATION in corpus.labels)
    return {shape: value for shape, value in result.items() if value > -np.inf and folds_properly(shape, continuation)}
