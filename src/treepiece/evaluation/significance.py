"""Statistical significance: bootstrap confidence intervals, and a paired test of two parsers.

A row is either correct or not, so the number of correct rows describes a bootstrap resample completely. Drawing that
number from its distribution is equivalent to resampling the rows one by one, and a thousand times faster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treepiece.checks import whole_number
from treepiece.errors import DataError

Bools = npt.NDArray[np.bool_]

_PERCENTILES = (2.5, 97.5)


def interval(hits: Bools, *, resamples: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % bootstrap percentile interval of the fraction of correct rows.

    If k of n rows are correct, the number of correct rows in a resample is binomial with probability k/n. If all rows
    are correct, or none, so are those of every resample, and the interval is a point.

    >>> low, high = interval(np.array([True] * 80 + [False] * 20))
    >>> low < 0.8 < high
    True
    """
    n_rows = _count_rows(hits)
    rng = np.random.default_rng(seed)
    counts = rng.binomial(n_rows, np.count_nonzero(hits) / n_rows, whole_number("resamples", resamples, 1))
    return _percentiles(counts, n_rows)


@dataclass(frozen=True)
class PairedTest:
    """The difference in exact match of two parsers, its 95 % interval, and the p-value.

    `only_first` counts the rows that only the first parser has correct.
    """

    difference: float
    low: float
    high: float
    p_value: float
    only_first: int
    only_second: int


def paired_test(first: Bools, second: Bools, *, resamples: int = 10_000, seed: int = 0) -> PairedTest:
    """Return the comparison of two parsers on the same rows: a paired bootstrap and McNemar's exact test.

    The same rows tend to be hard for both parsers, so rows are resampled in pairs. A pair is one of four kinds (both
    correct, only the first, only the second, neither); their numbers in a resample are multinomial.

    >>> result = paired_test(np.array([True] * 9 + [False]), np.array([False] * 9 + [False]))
    >>> result.difference, result.p_value, result.only_first
    (0.9, 0.00390625, 9)
    """
    if first.shape != second.shape:
        raise DataError(
            f"the parsers have {first.size:,} and {second.size:,} rows: both must have the same rows in the same order"
        )
    n_rows = _count_rows(first)
    only_first = int(np.count_nonzero(first & ~second))
    only_second = int(np.count_nonzero(second & ~first))
    cells = np.array([only_first, only_second, n_rows - only_first - only_second])  # pairs that agree cancel out
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(n_rows, cells / n_rows, whole_number("resamples", resamples, 1))
    low, high = _percentiles(draws[:, 0] - draws[:, 1], n_rows)
    return PairedTest(
        difference=(only_first - only_second) / n_rows,
        low=low,
        high=high,
        p_value=mcnemar(only_first, only_second),
        only_first=only_first,
        only_second=only_second,
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value of McNemar's exact test.

    Under the null hypothesis each row that only one parser has correct is a fair coin toss. The binomial tail is summed
    in integers, which neither overflow nor round.

    >>> mcnemar(5, 0), mcnemar(3, 3)
    (0.0625, 1.0)
    """
    n_rows = only_first + only_second
    ways = tail = 1
    for wins in range(1, min(only_first, only_second) + 1):
        ways = ways * (n_rows - wins + 1) // wins  # binomial coefficient, from the previous one
        tail += ways
    return min(1.0, 2 * tail / (1 << n_rows))


def _count_rows(hits: Bools) -> int:
    if hits.ndim != 1 or not hits.size or hits.dtype != np.bool_:
        raise DataError(f"expected one boolean per row and at least one row, got {hits.dtype} of shape {hits.shape}")
    return hits.size


def _percentiles(counts: npt.NDArray[np.int64], n_rows: int) -> tuple[float, float]:
    low, high = np.percentile(counts, _PERCENTILES) / n_rows
    return float(low), float(high)
