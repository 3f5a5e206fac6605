"""How far a score is from chance: bootstrap intervals, and a test of two parsers on the same rows.

Whether a row is right is yes or no, so a resample of the rows is known by its counts alone, and those can be drawn
without touching a row: the result is that of resampling rows one by one, at a thousandth of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treepiece.errors import DataError
from treepiece.options import whole_number

Bools = npt.NDArray[np.bool_]

_PERCENTILES = (2.5, 97.5)


def interval(hits: Bools, *, resamples: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % bootstrap percentile interval of the fraction of rows that are right.

    Rows drawn with replacement are right with probability k/n each, so how many of n are is a binomial draw. Where all
    rows are right, or none, so are those of every resample: the interval is a point, and says nothing about other data.

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
    """By how much the first parser is better than the second, with a 95 % interval, and how likely that is by chance.

    `only_first` counts the rows that the first parser alone has right.
    """

    difference: float
    low: float
    high: float
    p_value: float
    only_first: int
    only_second: int


def paired_test(first: Bools, second: Bools, *, resamples: int = 10_000, seed: int = 0) -> PairedTest:
    """Return how two parsers compare on the same rows: the difference in EM, its interval, and McNemar's exact p.

    Rows are drawn in pairs, because both parsers find the same rows hard: each pair is one of four kinds (both right,
    only the first, only the second, neither), so how many of each a resample has is a multinomial draw.

    >>> result = paired_test(np.array([True] * 9 + [False]), np.array([False] * 9 + [False]))
    >>> result.difference, result.p_value, result.only_first
    (0.9, 0.00390625, 9)
    """
    if first.shape != second.shape:
        raise DataError(f"the parsers have {first.size:,} and {second.size:,} rows: both need the same in one order")
    n_rows = _count_rows(first)
    only_first = int(np.count_nonzero(first & ~second))
    only_second = int(np.count_nonzero(second & ~first))
    cells = np.array([only_first, only_second, n_rows - only_first - only_second])  # two kinds make no difference
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
    """Return how likely a difference of this size or more is, either way, if both parsers are equally good.

    If they are, each row that only one has right is the first's or the second's like the toss of a coin. The binomial
    tail is summed in whole numbers, which cannot overflow or round; only the last division is not exact.

    >>> mcnemar(5, 0), mcnemar(3, 3)
    (0.0625, 1.0)
    """
    n_rows = only_first + only_second
    ways = tail = 1
    for wins in range(1, min(only_first, only_second) + 1):
        ways = ways * (n_rows - wins + 1) // wins  # of `wins` among n_rows, from those of one less
        tail += ways
    return min(1.0, 2 * tail / (1 << n_rows))


def _count_rows(hits: Bools) -> int:
    if hits.ndim != 1 or not hits.size or hits.dtype != np.bool_:
        raise DataError(f"expected one boolean a row and at least one row, got {hits.dtype} of shape {hits.shape}")
    return hits.size


def _percentiles(counts: npt.NDArray[np.int64], n_rows: int) -> tuple[float, float]:
    low, high = np.percentile(counts, _PERCENTILES) / n_rows
    return float(low), float(high)
