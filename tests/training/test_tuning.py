"""The settings of decoding are fitted by running the pipeline on rows that the model was not trained on."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from tiny import rows_of, tiny_model

from treepiece.data.examples import make_examples
from treepiece.decoding.types import DecodingConfig, Temperatures
from treepiece.models.trained import load_model, save_model
from treepiece.training.tuning import THRESHOLDS, WEIGHTS, best_threshold, collect, is_right, tune, tune_reranking
from treepiece.trees.frame import Frame

PRICE = 0.01
gains = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([-1.0, 0.0, 0.0, 1.0])), max_size=30)


@given(gains)
def test_no_other_threshold_is_worth_more(found):
    def value(threshold):
        return sum(gain - PRICE for p, gain in found if p < threshold)

    p, gain = np.array(found).reshape(-1, 2).T
    best = best_threshold(p, gain, 0.6)
    assert best in THRESHOLDS
    assert value(best) == pytest.approx(max(map(value, THRESHOLDS)))


def test_without_rows_the_default_stays():
    assert best_threshold(np.array([]), np.array([]), 0.6) == 0.6


@pytest.fixture(scope="module")
def trained(tiny_encoder):
    return tiny_model(tiny_encoder, reranker=True)


@pytest.fixture(scope="module")
def examples(trained):
    """Rows whose right answer is, in turns, the one before reranking and the one after: there are gains and losses."""
    made = make_examples(rows_of(24, seed=4), trained.subwords)[0]
    answers = []
    for threshold in (0.0, 1.0):
        config = DecodingConfig(rerank_threshold=threshold, reranker_weight=0.4)
        answers.append([trained.model.parse([example.subwords], config)[0][0] for example in made])
    return [answered(one, answers[place % 2][place]) for place, one in enumerate(made)]


def answered(example, hypothesis):
    chars = [example.subwords.chars(span) for span in hypothesis.spans]
    frame = Frame.from_chars(example.frame.utterance, hypothesis.skeleton, chars)
    return replace(example, frame=frame, spans=hypothesis.spans)


def answer(trained, example, config):
    return trained.model.parse([example.subwords], config)[0][0]


def test_a_row_tells_what_comes_of_parsing_with_and_without_reranking(trained, examples):
    config = DecodingConfig(reranker_weight=0.4)
    rows = collect(trained.model, examples, config)
    assert {row.gain(config) for row in rows} == {-1, 0, 1}
    for row in rows:
        for threshold in (0.0, 0.6, 0.95):
            settings = replace(config, rerank_threshold=threshold)
            wanted, found = answer(trained, row.example, settings), row.answer(settings)
            assert (found.skeleton, found.spans, found.passes) == (wanted.skeleton, wanted.spans, wanted.passes)


def test_the_fitted_threshold_has_the_best_value_of_all(trained, examples):
    config = tune_reranking(collect(trained.model, examples, DecodingConfig()), DecodingConfig())
    assert config.reranker_weight in WEIGHTS

    greedy = [answer(trained, example, replace(config, rerank_threshold=0.0)) for example in examples]
    p = np.exp([one.unit_log_p for one in greedy])

    def value(threshold):
        settings = replace(config, rerank_threshold=threshold)
        found = [answer(trained, example, settings) for example in examples]
        right = sum(is_right(example, one) for example, one in zip(examples, found, strict=True))
        return right - PRICE * sum(p < threshold)

    assert value(config.rerank_threshold) == pytest.approx(max(map(value, THRESHOLDS)))


@pytest.mark.parametrize("kind", ["treepiece", "ar", "nar"])
def test_a_model_without_a_reranker_gets_temperatures_only(tiny_encoder, kind):
    trained = tiny_model(tiny_encoder, kind)
    config = tune(trained.model, make_examples(rows_of(20), trained.subwords)[0])
    assert replace(config, temperatures=Temperatures()) == DecodingConfig()
    assert config.temperatures != Temperatures()


def test_the_settings_travel_with_the_model(trained, tmp_path):
    config = DecodingConfig(beam=5, rerank_threshold=0.85, temperatures=Temperatures(1.5, 2.5))
    save_model(tmp_path / "model", replace(trained, decoding=config))
    assert load_model(tmp_path / "model").decoding == config
