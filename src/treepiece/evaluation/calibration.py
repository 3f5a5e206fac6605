"""Calibration of confidences: expected calibration error, coverage, and temperature scaling.

The confidence of a parse with probability p is p ** (1 / temperature). The temperature minimises the negative
log-likelihood of which parses are correct.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_RANGE = (1e-2, 1e2)
_STEPS = 60
_GOLDEN = (5**0.5 - 1) / 2


def expected_calibration_error(confidences: Floats, is_right: Bools, n_bins: int = 15) -> float:
    """Return the mean distance between confidence and accuracy, over bins of equal width.

    For two predictions with confidence 0.9, one of them correct, the accuracy of the bin is 0.5:

    >>> expected_calibration_error(np.array([0.9, 0.9]), np.array([True, False]))
    0.4
    """
    bins = np.minimum((confidences * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    gaps = np.bincount(bins, confidences - is_right, minlength=n_bins)
    return float(np.abs(gaps).sum() / max(1, counts.sum()))


def selective_accuracy(confidences: Floats, is_right: Bools, threshold: float) -> tuple[float, float]:
    """Return the coverage at a confidence threshold and the accuracy on what is covered (1.0 if nothing is).

    Half of these predictions reach the threshold of 0.5, and half of those are correct:

    >>> selective_accuracy(np.array([0.9, 0.8, 0.3, 0.2]), np.array([True, False, True, False]), 0.5)
    (0.5, 0.5)
    """
    is_covered = confidences >= threshold
    return float(is_covered.mean()), float(is_right[is_covered].mean()) if is_covered.any() else 1.0


def fit_temperature(log_p: Floats, is_right: Bools) -> float:
    """Return the temperature with the highest likelihood; 1 if there are no predictions.

    A model with a probability of 0.01 that is correct half of the time needs a high temperature:

    >>> bool(fit_temperature(np.full(10, -4.6), np.arange(10) < 5) > 5)
    True
    """
    if not len(log_p):
        return 1.0
    low, high = np.log(_RANGE)
    # The loss is unimodal in the logarithm of the temperature: golden-section search finds its minimum.
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if _loss(log_p, is_right, np.exp(left)) < _loss(log_p, is_right, np.exp(right)):
            high = right
        else:
            low = left
    return float(np.exp((low + high) / 2))


def _loss(log_p: Floats, is_right: Bools, temperature: float) -> float:
    """Return the mean negative log-likelihood of which predictions are correct."""
    scaled = np.clip(log_p, -1e4, -1e-9) / temperature
    wrong = np.log(-np.expm1(np.minimum(scaled, -1e-9)))
    return float(-np.where(is_right, scaled, wrong).mean())
