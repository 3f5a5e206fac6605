"""Whether a parser's probabilities mean what they say, and the temperature that makes them.

With confidence = p ** (1 / temperature), the temperature that makes right answers most likely to be called right and
wrong ones wrong is found by searching along one line.
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
    """Return how far confidence and share of right answers are apart, on average over answers.

    Answers are sorted into bins of equal width by confidence. Two answers of 0.9, one of them right, are 0.4 off:

    >>> expected_calibration_error(np.array([0.9, 0.9]), np.array([True, False]))
    0.4
    """
    bins = np.minimum((confidences * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    gaps = np.bincount(bins, confidences - is_right, minlength=n_bins)
    return float(np.abs(gaps).sum() / max(1, counts.sum()))


def answered(confidences: Floats, is_right: Bools, least: float) -> tuple[float, float]:
    """Return the share of texts that are answered with a confidence of `least` or more, and how many of those rightly.

    Where nothing is answered, nothing is wrong. Of the two that are sure enough here one is right:

    >>> answered(np.array([0.9, 0.8, 0.3, 0.2]), np.array([True, False, True, False]), 0.5)
    (0.5, 0.5)
    """
    is_sure = confidences >= least
    return float(is_sure.mean()), float(is_right[is_sure].mean()) if is_sure.any() else 1.0


def fit_temperature(log_p: Floats, is_right: Bools) -> float:
    """Return the temperature under which the answers are most probable; 1 where there are no answers.

    A model that says 0.01 and is right half of the time needs a high temperature:

    >>> bool(fit_temperature(np.full(10, -4.6), np.arange(10) < 5) > 5)
    True
    """
    if not len(log_p):
        return 1.0
    low, high = np.log(_RANGE)
    # The loss has one minimum along the logarithm of the temperature: golden-section search closes in on it.
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if _loss(log_p, is_right, np.exp(left)) < _loss(log_p, is_right, np.exp(right)):
            high = right
        else:
            low = left
    return float(np.exp((low + high) / 2))


def _loss(log_p: Floats, is_right: Bools, temperature: float) -> float:
    """Return the mean negative log-likelihood of what was right and what was not."""
    scaled = np.clip(log_p, -1e4, -1e-9) / temperature
    wrong = np.log(-np.expm1(np.minimum(scaled, -1e-9)))
    return float(-np.where(is_right, scaled, wrong).mean())
