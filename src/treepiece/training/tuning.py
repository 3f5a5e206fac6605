"""Fits the settings of decoding on rows that the model was not trained on.

The pipeline searches each row once, with the highest threshold; its n-best lists do not depend on the settings. Weight
and threshold are then chosen by running the last step of the pipeline, `choose`, on these lists.

    reranker_weight     makes the right candidates of low-confidence rows most probable
    rerank_threshold    the most right answers, where reranking one more row costs a hundredth of an answer
    temperatures        make right answers most likely to be called right, and wrong ones wrong
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from treepiece.data.examples import Example
from treepiece.decoding.pipeline import choose
from treepiece.decoding.types import DecodingConfig, Hypothesis, NBest, Temperatures
from treepiece.evaluation.calibration import Bools, Floats, fit_temperature
from treepiece.models.trained import ParserModel
from treepiece.models.treepiece_model import TreePieceModel
from treepiece.training.prediction import batches_by_length, best_hypotheses
from treepiece.trees.frame import leaf_labels

MAX_TUNING_ROWS = 2000
"""The maximum number of rows; more do not change the result: a few numbers, fitted on the tenth of the rows with low
confidence."""
THRESHOLDS = tuple(round(0.3 + 0.05 * step, 2) for step in range(14))
"""The thresholds to choose from, 0.3 to 0.95: some rows are always reranked, and some never."""
WEIGHTS = tuple(round(0.05 * step, 2) for step in range(17))
"""The interpolation weights to choose from, 0 to 0.8."""
_PRICE = 0.01  # reranking is worth it if one more tree in a hundred is right
_TEMPERATURES = np.geomspace(0.5, 8.0, 25)


@dataclass(frozen=True)
class TuningRow:
    """One row: its example, its greedy hypothesis, and the n-best list that reranking would choose from."""

    example: Example
    greedy: Hypothesis
    found: NBest

    @property
    def p(self) -> float:
        """The probability of the greedy skeleton."""
        return math.exp(self.found.greedy_log_p)

    def gain(self, config: DecodingConfig) -> int:
        """Return the gain from reranking: 1 if it makes a wrong answer right, -1 for the reverse, 0 otherwise."""
        return int(is_right(self.example, choose(self.found, config)[0])) - int(is_right(self.example, self.greedy))

    def answer(self, config: DecodingConfig) -> Hypothesis:
        """Return the hypothesis that the pipeline answers with."""
        return choose(self.found, config)[0] if self.p < config.rerank_threshold else self.greedy


def tune(model: ParserModel, examples: Sequence[Example], config: DecodingConfig | None = None) -> DecodingConfig:
    """Return settings fitted on examples, which must not be training examples of the model.

    A model without a reranker gets temperatures only.
    """
    config = config or DecodingConfig()
    if isinstance(model, TreePieceModel) and model.reranker is not None:
        rows = collect(model, examples, config)
        config = tune_reranking(rows, config)
        hypotheses = [row.answer(config) for row in rows]
        examples = [row.example for row in rows]
    else:
        hypotheses = best_hypotheses(model, examples)
    temperatures = Temperatures(
        fit_temperature(*parse_log_p(examples, hypotheses)), fit_temperature(*leaf_log_p(examples, hypotheses))
    )
    return replace(config, temperatures=temperatures)


@torch.no_grad()
def collect(model: TreePieceModel, examples: Sequence[Example], config: DecodingConfig) -> list[TuningRow]:
    """Return the greedy hypothesis and the n-best list of each example."""
    rows = []
    was_training = model.training
    model.eval()
    for places in batches_by_length(examples):
        chunk = [examples[place] for place in places]
        scorer = model.scorer([example.subwords for example in chunk])
        greedy = model.pipeline.decode(scorer, replace(config, rerank_threshold=0.0))
        found = model.pipeline.search(scorer, replace(config, rerank_threshold=max(THRESHOLDS)))
        rows += [TuningRow(one, best, beam) for one, (best,), beam in zip(chunk, greedy, found, strict=True)]
    model.train(was_training)
    return rows


def tune_reranking(rows: Sequence[TuningRow], config: DecodingConfig) -> DecodingConfig:
    """Return settings with the best reranker weight and threshold for some rows."""
    low = [row for row in rows if row.p < config.rerank_threshold and len(row.found.hypotheses) > 1]
    solvable = [row for row in low if any(is_right(row.example, one) for one in row.found.hypotheses)]
    if solvable:
        weight = max(WEIGHTS, key=lambda weight: _right_log_p(solvable, replace(config, reranker_weight=weight)))
        config = replace(config, reranker_weight=weight)
    below = [row for row in rows if row.p < max(THRESHOLDS)]
    gains = np.array([row.gain(config) for row in below], np.float64)
    threshold = best_threshold(np.array([row.p for row in below]), gains, config.rerank_threshold)
    return replace(config, rerank_threshold=threshold)


def best_threshold(p: Floats, gains: Floats, default: float) -> float:
    """Return the threshold of the highest value; among equal values, the one nearest to the default.

        value(threshold) = sum over the rows with p < threshold of (right after reranking - right before - price)

    `p` are the probabilities of the greedy skeletons, and `gains` those from reranking each answer. Reranking the last
    row here makes it worse:

    >>> best_threshold(np.array([0.42, 0.74, 0.88]), np.array([1.0, 1.0, -1.0]), 0.6)
    0.75
    """
    nearest = sorted(THRESHOLDS, key=lambda threshold: abs(threshold - default))
    return max(nearest, key=lambda threshold: float((gains - _PRICE)[p < threshold].sum()))


def _right_log_p(rows: Sequence[TuningRow], config: DecodingConfig) -> float:
    """Return the mean log-probability of the right hypotheses within their beams, at the best temperature.

    Parser and reranker learned from the same rows, so their product is overconfident. Without a temperature of its own,
    this would count against the reranker, however often it is right.
    """
    chosen = [choose(row.found, config) for row in rows]
    width = max(map(len, chosen))
    log_p = np.array([[*(one.log_p for one in few), *[-1e8] * (width - len(few))] for few in chosen])
    log_p -= log_p.max(axis=1, keepdims=True)
    right = [
        next(place for place, one in enumerate(few) if is_right(row.example, one))
        for row, few in zip(rows, chosen, strict=True)
    ]
    found = log_p[np.arange(len(rows)), right]
    return max(float((found / t - np.log(np.exp(log_p / t).sum(axis=1))).mean()) for t in _TEMPERATURES)


def parse_log_p(examples: Sequence[Example], hypotheses: Sequence[Hypothesis]) -> tuple[Floats, Bools]:
    """Return the log-probability of each hypothesis, and whether it is right."""
    right = [is_right(example, one) for example, one in zip(examples, hypotheses, strict=True)]
    return np.array([one.log_p for one in hypotheses]), np.array(right, bool)


def leaf_log_p(examples: Sequence[Example], hypotheses: Sequence[Hypothesis]) -> tuple[Floats, Bools]:
    """Return the log-probability of each leaf of all hypotheses, and whether it is right."""
    log_p: list[float] = []
    right: list[bool] = []
    for example, one in zip(examples, hypotheses, strict=True):
        gold = set(zip(leaf_labels(example.frame.skeleton), example.spans, strict=True))
        log_p += one.leaf_log_p
        right += [leaf in gold for leaf in zip(leaf_labels(one.skeleton), one.spans, strict=True)]
    return np.array(log_p), np.array(right, bool)


def is_right(example: Example, hypothesis: Hypothesis) -> bool:
    """Return whether a hypothesis is the gold frame."""
    return (hypothesis.skeleton, hypothesis.spans) == (example.frame.skeleton, example.spans)
