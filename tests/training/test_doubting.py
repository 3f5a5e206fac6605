"""A model looks again where that was worth it on rows that it was not trained on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from tiny import export_tiny, tiny_model  # noqa: E402

from treepiece.decoding.ranking import SURE  # noqa: E402
from treepiece.models.trained import load_model, save_model  # noqa: E402
from treepiece.runtime.parser import Parser  # noqa: E402
from treepiece.training.doubting import LEVELS, PRICE, best_level, fit_sureness  # noqa: E402
from treepiece.training.examples import make_examples  # noqa: E402
from treepiece.training.prediction import count_matches  # noqa: E402
from treepiece.training.weighing import fit_weights  # noqa: E402

looks = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([-1.0, 0.0, 0.0, 1.0])), max_size=30)


@given(looks)
def test_no_other_level_is_worth_more(found):
    def value(level):
        return sum(gain - PRICE for p, gain in found if p < level)

    p, gains = np.array(found).reshape(-1, 2).T
    best = best_level(p, gains)
    assert best in LEVELS
    assert value(best) == pytest.approx(max(map(value, LEVELS)))


def test_without_rows_the_default_stays():
    assert best_level(np.array([]), np.array([])) == SURE
    assert SURE in LEVELS


def test_the_fitted_level_has_the_best_value_of_all(toy, tiny_encoder):
    trained = tiny_model(tiny_encoder, judged=True)
    examples = make_examples(toy(60), trained.subwords)[0]
    fit_sureness(trained.model, examples)
    fitted = float(trained.model.sure)

    def value(level):
        trained.model.sure.fill_(level)
        utterances = [example.subwords for example in examples]
        n_looks = sum(
            parse.passes > len(parse.unit_ids) + bool(parse.spans) for (parse,) in trained.model.parse(utterances)
        )
        return int(count_matches(trained.model, examples)[1]) - PRICE * n_looks

    assert value(fitted) == pytest.approx(max(map(value, LEVELS)))


def test_a_model_without_second_looks_has_nothing_to_fit(toy, tiny_encoder):
    trained = tiny_model(tiny_encoder)
    fit_weights(trained.model, make_examples(toy(20), trained.subwords)[0])
    assert float(trained.model.sure) == pytest.approx(SURE)


def test_the_level_travels_with_the_model(tmp_path, tiny_encoder):
    trained = tiny_model(tiny_encoder, judged=True)
    trained.model.sure.fill_(0.85)
    bundle = export_tiny(tmp_path, trained)
    kept = float(load_model(bundle.parent / "model").model.sure)
    assert kept == pytest.approx(0.85)
    parser = Parser.load(bundle, precision="float")
    assert parser.model.sure == kept == parser._together.sure


def test_a_model_of_before_has_the_default(tmp_path, tiny_encoder):
    trained = tiny_model(tiny_encoder, judged=True)
    trained.model.sure.fill_(0.85)
    del trained.model._buffers["sure"]  # as it was saved before there was such a level
    save_model(tmp_path / "model", trained)
    assert float(load_model(tmp_path / "model").model.sure) == pytest.approx(SURE)
