"""Confidences mean what they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treepiece.evaluation.calibration import expected_calibration_error, fit_temperature, selective_accuracy


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_the_temperature_is_found_again(temperature):
    random = np.random.default_rng(0)
    confidences = random.uniform(0.05, 1, 20_000)
    is_right = random.uniform(size=20_000) < confidences
    log_p = temperature * np.log(confidences)
    assert fit_temperature(log_p, is_right) == pytest.approx(temperature, rel=0.05)


def test_fitting_mends_calibration():
    random = np.random.default_rng(1)
    confidences = random.uniform(0.2, 1, 5_000)
    is_right = random.uniform(size=5_000) < confidences
    log_p = 3 * np.log(confidences)
    temperature = fit_temperature(log_p, is_right)
    before = expected_calibration_error(np.exp(log_p), is_right)
    after = expected_calibration_error(np.exp(log_p / temperature), is_right)
    assert before > 0.1
    assert after < 0.02


@given(st.lists(st.tuples(st.floats(-1e6, 0), st.booleans()), max_size=20))
def test_any_answers_give_a_temperature(answers):
    log_p, is_right = np.array([a for a, _ in answers]), np.array([b for _, b in answers], bool)
    temperature = fit_temperature(log_p, is_right)
    assert 0.009 < temperature < 101
    assert 0 <= expected_calibration_error(np.exp(log_p / temperature), is_right) <= 1


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=20), st.floats(0, 1))
def test_a_higher_threshold_covers_less(answers, threshold):
    confidences, is_right = np.array([a for a, _ in answers]), np.array([b for _, b in answers], bool)
    assert selective_accuracy(confidences, is_right, 0.0) == (1.0, is_right.mean())
    coverage, accuracy = selective_accuracy(confidences, is_right, threshold)
    assert 0 <= coverage <= 1
    assert 0 <= accuracy <= 1
    assert selective_accuracy(confidences, is_right, min(1.0, threshold + 0.1))[0] <= coverage
