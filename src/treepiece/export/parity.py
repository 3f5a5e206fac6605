"""Checks that graphs give the same results as PyTorch, and scores them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treepiece.data.examples import Example, outcome_of
from treepiece.decoding.types import Hypothesis, Temperatures
from treepiece.errors import BundleError
from treepiece.evaluation.calibration import expected_calibration_error, selective_accuracy
from treepiece.models.trained import TrainedModel
from treepiece.progress import Progress
from treepiece.runtime.parser import Parser
from treepiece.runtime.sessions import Precision, as_ids
from treepiece.text import Subwords
from treepiece.training.tuning import leaf_log_p, parse_log_p

TOLERANCE = 1e-3
"""The largest allowed difference from PyTorch in the log-probability of a parse, in single precision."""
LEAST_AGREEMENT = 0.9
"""The share of trees in int8 that must equal those of PyTorch."""
MIN_CONFIDENCES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95)
"""The values of `min_confidence` in a card's table."""
_BATCH = 64
_ON_THE_EDGE = 500
_FEW = 20
_REMEDIES = {"int8": "leave them out with --no-int8", "half": "keep them with --weights float"}
"""What to do if rounding changes too many trees."""


@dataclass(frozen=True)
class Parity:
    """The comparison of graphs, or rounded weights, with the trained model on the same rows."""

    rows: int
    same_trees: int
    largest_difference: float
    """The largest difference of log-probabilities, over rows with the same tree."""

    @property
    def agreement(self) -> float:
        """The share of rows with the same tree."""
        return self.same_trees / max(1, self.rows)


def parse_with_torch(
    trained: TrainedModel, utterances: Sequence[Subwords], stage: str, progress: Progress
) -> list[Hypothesis]:
    """Return the best parse of each utterance."""
    parses: list[Hypothesis] = []
    for start in range(0, len(utterances), _BATCH):
        found = trained.model.parse(utterances[start : start + _BATCH], trained.decoding)
        parses += [best for (best,) in found]
        progress.update(stage, len(parses), len(utterances))
    return parses


def parse_with_graphs(parser: Parser, utterances: Sequence[Subwords], progress: Progress) -> list[Hypothesis]:
    """Return the best parse of each utterance, each parsed alone."""
    parses = []
    for utterance in utterances:
        parses.append(parser.model.parse(as_ids([utterance.ids]))[0][0])
        progress.update(f"parsing in {parser.precision}", len(parses), len(utterances))
    return parses


def check_parity(wanted: Sequence[Hypothesis], found: Sequence[Hypothesis], name: str, least: float) -> Parity:
    """Return how parses compare; raise where the graphs (`float`, `int8`) or weights (`weights-half`) must not be used.

    In single precision the trees must be the same, except that either of two trees with equal probability may win, and
    that one row in `_ON_THE_EDGE` (and one of `_FEW` rows, too) may be on an edge: above the rerank threshold in one
    and below it in the other, or with two equally probable lengths. In int8 and in half precision a few low-confidence
    trees may differ: the share of equal trees must be `least`.
    """
    *kind, precision = name.split("-")
    what = f"the {kind[0] if kind else 'graphs'} in {precision}"
    is_same = [(a.skeleton, a.spans) == (b.skeleton, b.spans) for a, b in zip(wanted, found, strict=True)]
    gaps = [_gap(a, b) for a, b in zip(wanted, found, strict=True)]
    largest = max((gap for gap, same in zip(gaps, is_same, strict=True) if same), default=0.0)
    parity = Parity(len(wanted), sum(is_same), largest)
    if precision == Precision.FLOAT:
        n_edges = math.ceil(len(gaps) / _ON_THE_EDGE) if len(gaps) >= _FEW else 0
        worst = sorted(gaps, reverse=True)[n_edges] if gaps else 0.0
        if worst > TOLERANCE:
            raise BundleError(
                f"{what} do not give the results of PyTorch: {parity.rows - parity.same_trees} of "
                f"{parity.rows} trees differ, and log-probabilities by {worst:.2g} (at most {TOLERANCE}); "
                "nothing was written: this is a fault in treepiece, please report it"
            )
    elif parity.agreement < least:
        raise BundleError(
            f"{what} give the tree of PyTorch for only {parity.agreement:.1%} of the rows "
            f"(at least {least:.1%}); nothing was written: {_REMEDIES[precision]}"
        )
    return parity


def _gap(a: Hypothesis, b: Hypothesis) -> float:
    if a.log_p == b.log_p:  # which may be infinite
        return 0.0
    gap = abs(a.log_p - b.log_p)
    return gap if np.isfinite(gap) else np.inf


@dataclass(frozen=True)
class Quality:
    """Scores on rows with a reference: exact match, calibration errors, and the effect of `min_confidence`.

    `answered` has, for each `min_confidence`, the share of texts that are answered, and the share of those answers that
    are right.
    """

    rows: int
    em: float
    em_s: float
    parse_error: float
    leaf_error: float
    answered: tuple[tuple[float, float, float], ...]


def measure(examples: Sequence[Example], hypotheses: Sequence[Hypothesis], temperatures: Temperatures) -> Quality:
    """Return the scores of hypotheses; temperatures are fitted elsewhere, on other rows (see `training.tuning`)."""
    outcomes = [outcome_of(example, one) for example, one in zip(examples, hypotheses, strict=True)]
    log_p, is_right = parse_log_p(examples, hypotheses)
    confidences = np.exp(np.minimum(log_p, 0) / temperatures.parse)
    leaf, leaf_is_right = leaf_log_p(examples, hypotheses)
    return Quality(
        len(outcomes),
        float(np.mean([outcome.is_exact for outcome in outcomes])),
        float(np.mean([outcome.is_skeleton for outcome in outcomes])),
        expected_calibration_error(confidences, is_right),
        expected_calibration_error(np.exp(np.minimum(leaf, 0) / temperatures.leaf), leaf_is_right),
        tuple((least, *selective_accuracy(confidences, is_right, least)) for least in MIN_CONFIDENCES),
    )
