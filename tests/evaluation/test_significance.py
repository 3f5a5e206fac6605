from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treepiece.errors import DataError, OptionError
from treepiece.evaluation.significance import interval, mcnemar, paired_test


def hits(right: int, wrong: int):
    return np.array([True] * right + [False] * wrong)


pairs = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60).map(
    lambda rows: tuple(np.array(column) for column in zip(*rows, strict=True))
)


@given(st.integers(0, 80), st.integers(1, 80))
def test_an_interval_holds_its_fraction_and_shrinks_with_the_rows(right, wrong):
    low, high = interval(hits(right, wrong))
    assert 0 <= low <= right / (right + wrong) <= high <= 1
    if right:
        closer_low, closer_high = interval(hits(100 * right, 100 * wrong))
        assert closer_high - closer_low < high - low
    else:
        assert low == high == 0


def test_the_interval_is_that_of_resampled_rows():
    rows = hits(60, 20)
    rng = np.random.default_rng(1)
    means = rng.choice(rows, (20_000, rows.size)).mean(axis=1)
    assert interval(rows, resamples=20_000) == pytest.approx(np.percentile(means, [2.5, 97.5]), abs=1.5 / rows.size)


@given(pairs)
def test_swapping_the_parsers_turns_the_result_round(pair):
    first, second = pair
    one, other = paired_test(first, second), paired_test(second, first)
    assert one.difference == -other.difference == pytest.approx(first.mean() - second.mean())
    assert one.p_value == other.p_value
    assert (one.only_first, one.only_second) == (other.only_second, other.only_first)
    assert one.low <= one.difference <= one.high
    # The draws are not mirrored, so a bound may be off by one step; if no row is a draw, a step is two rows.
    assert [one.low, one.high] == pytest.approx([-other.high, -other.low], abs=2.5 / first.size)


def test_the_paired_interval_is_that_of_resampled_rows():
    first, second = hits(70, 30), np.roll(hits(55, 45), 20)
    rows = np.random.default_rng(1).integers(0, 100, (20_000, 100))
    means = (first[rows].astype(int) - second[rows]).mean(axis=1)
    result = paired_test(first, second, resamples=20_000)
    assert (result.low, result.high) == pytest.approx(np.percentile(means, [2.5, 97.5]), abs=0.015)


def test_a_parser_does_not_differ_from_itself():
    result = paired_test(hits(3, 4), hits(3, 4))
    assert (result.difference, result.low, result.high, result.p_value) == (0, 0, 0, 1)


@pytest.mark.parametrize("n_rows", range(9))
def test_mcnemar_counts_the_tosses_that_are_as_far_from_even(n_rows):
    tosses = [sum(toss) for toss in product((0, 1), repeat=n_rows)]
    for wins in range(n_rows + 1):
        as_far = sum(abs(2 * other - n_rows) >= abs(2 * wins - n_rows) for other in tosses)
        assert mcnemar(wins, n_rows - wins) == as_far / len(tosses)


def test_mcnemar_takes_many_rows():
    assert mcnemar(10_000, 10_000) == 1
    assert mcnemar(20_000, 0) == 0  # 2 ** -19999, less than a float can be
    assert mcnemar(10_100, 9_900) == pytest.approx(0.1593, abs=1e-4)  # the normal distribution with 1.407 sigma


@pytest.mark.parametrize("rows", [np.array([], bool), np.array([[True]]), np.array([1, 0])])
def test_what_is_not_one_boolean_a_row_is_refused(rows):
    for call in (interval, lambda rows: paired_test(rows, rows)):
        with pytest.raises(DataError, match="expected one boolean per row and at least one row, got"):
            call(rows)


def test_rows_that_are_not_paired_are_refused():
    with pytest.raises(
        DataError, match="the parsers have 2 and 1 rows: both must have the same rows in the same order"
    ):
        paired_test(hits(1, 1), hits(1, 0))


def test_resamples_are_counted_from_one():
    with pytest.raises(OptionError, match="resamples must be a whole number, 1 or more, got 0"):
        interval(hits(1, 1), resamples=0)
