"""A model looks again where that was worth it on rows that it was not trained on."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from tiny import export_tiny, tiny_model  # noqa: E402

from treepiece.decoding.ranking import SURE  # noqa: E402
from treepiece.models.trained import load_model, save_model  # noqa: E402
from treepiece.runtime.parser import Parser  # noqa: E402
from treepiece.training.doubting import LEVELS, PRICE, best_level  # noqa: E402
from treepiece.training.examples import make_examples  # noqa: E402
from treepiece.training.looking import look_again  # noqa: E402
from treepiece.training.prediction import count_matches  # noqa: E402
from treepiece.training.weighing import fit_weights  # noqa: E402
from treepiece.trees.frame import Frame  # noqa: E402

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
    fit_weights(trained.model, examples)
    fitted = float(trained.model.sure)

    def value(level):
        trained.model.sure.fill_(level)
        utterances = [example.subwords for example in examples]
        n_looks = sum(
            parse.passes > len(parse.unit_ids) + bool(parse.spans) for (parse,) in trained.model.parse(utterances)
        )
        return int(count_matches(trained.model, examples)[1]) - PRICE * n_looks

    assert value(fitted) == pytest.approx(max(map(value, LEVELS)))


@pytest.mark.parametrize(("ranked", "judged"), [(True, False), (False, True), (True, True)])
def test_a_look_sees_what_comes_of_parsing_with_and_without_one(ranked, judged, toy, tiny_encoder):
    trained = tiny_model(tiny_encoder, ranked=ranked, judged=judged)
    model = trained.model
    for part in (model.spans.ranker, model.judge):
        if part is not None:
            part.weight.fill_(0.7)
    examples = sorted(make_examples(toy(60), trained.subwords)[0], key=lambda example: len(example.subwords.ids))
    answers = []
    for sure in (0.0, 2.0):
        model.sure.fill_(sure)
        answers.append([model.parse([example.subwords])[0][0] for example in examples])
    # Rows whose right answer is, in turns, the one before a look and the one after it: there are gains and losses.
    examples = [answered(one, answers[place % 2][place]) for place, one in enumerate(examples)]
    right = [[is_right(*pair) for pair in zip(examples, few, strict=True)] for few in answers]
    gains = [after - before for before, after in zip(*right, strict=True)]
    assert {-1, 0, 1} == set(gains)
    looks = look_again(model, examples, level=2.0)
    assert [look.was_right for look in looks] == right[0]
    assert [look.gain(0.7, model.judge.share if judged else 0.0) for look in looks] == gains
    assert look_again(model, examples, level=0.0) == []


def answered(example, parse):
    """Return an example whose right answer is a parse."""
    chars = [example.subwords.chars(span) for span in parse.spans]
    return replace(example, frame=Frame.from_chars(example.frame.utterance, parse.skeleton, chars), spans=parse.spans)


def is_right(example, parse):
    return (parse.skeleton, parse.spans) == (example.frame.skeleton, tuple(example.spans))


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
