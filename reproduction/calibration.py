"""Whether confidences mean what they say, on rows that the temperature was not fitted on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from reproduction.store import Json
from treepiece.decoding.parse import Parse
from treepiece.evaluation.calibration import expected_calibration_error
from treepiece.evaluation.outcomes import Outcome
from treepiece.runtime.confidence import Temperatures, leaf_log_p

N_BINS = 15

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def judge(parses: Sequence[Parse], outcomes: Sequence[Outcome], temperatures: Temperatures) -> Json:
    """Return the calibration of whole parses and of their leaves, before and after the temperature."""
    whole = np.array([parse.log_p for parse in parses]), np.array([outcome.is_exact for outcome in outcomes], bool)
    leaves = _leaves(parses, outcomes)
    return {
        "parses": _calibration(*whole, temperatures.parse),
        "leaves": _calibration(*leaves, temperatures.leaf),
    }


def _leaves(parses: Sequence[Parse], outcomes: Sequence[Outcome]) -> tuple[Floats, Bools]:
    """Return the log-probability of each leaf that has one, and whether the leaf is right."""
    log_p: list[float] = []
    is_right: list[bool] = []
    for parse, outcome in zip(parses, outcomes, strict=True):
        gold = {(leaf.label, leaf.chars) for leaf in outcome.gold.leaves}
        values = leaf_log_p(parse)
        log_p += values
        is_right += [(leaf.label, leaf.chars) in gold for leaf in outcome.predicted.leaves[: len(values)]]
    return np.array(log_p, float), np.array(is_right, bool)


def _calibration(log_p: Floats, is_right: Bools, temperature: float) -> Json:
    before, after = np.exp(np.minimum(log_p, 0.0)), np.exp(np.minimum(log_p, 0.0) / temperature)
    return {
        "answers": len(log_p),
        "temperature": temperature,
        "error_before": expected_calibration_error(before, is_right, N_BINS),
        "error_after": expected_calibration_error(after, is_right, N_BINS),
        "bins_before": reliability_bins(before, is_right),
        "bins_after": reliability_bins(after, is_right),
    }


def reliability_bins(confidences: Floats, is_right: Bools) -> list[dict[str, float]]:
    """Return for each bin of confidences that has any: how many, their mean, and the share that is right.

    >>> reliability_bins(np.array([0.9, 0.92]), np.array([True, False]))
    [{'answers': 2, 'confidence': 0.91, 'right': 0.5}]
    """
    bins = np.minimum((confidences * N_BINS).astype(int), N_BINS - 1)
    return [
        {
            "answers": int(np.count_nonzero(bins == place)),
            "confidence": float(np.mean(confidences[bins == place])),
            "right": float(np.mean(is_right[bins == place])),
        }
        for place in np.unique(bins).tolist()
    ]
