"""The fit of the classifier of scope."""

import json

import numpy as np
import pytest
import torch
from tiny import rows_of

from treepiece import Parser, train
from treepiece.data.out_of_scope import Request
from treepiece.errors import DataError
from treepiece.progress import NoProgress
from treepiece.training.scoping import (
    MAX_ROWS,
    fit_scope,
    gibberish,
    join_texts,
    logistic_regression,
    near_groups,
    pooled_groups,
)


def test_the_regression_has_the_gradient_zero():
    """The penalised cross-entropy of balanced classes is convex: where the gradient is zero, it is smallest."""
    generator = torch.Generator().manual_seed(0)
    positive, negative = torch.randn(40, 3, generator=generator) + 0.5, torch.randn(90, 3, generator=generator)
    weights, bias = logistic_regression(positive, negative, 0.5)
    x, y = torch.cat([positive, negative]).double(), torch.cat([torch.ones(40), torch.zeros(90)]).double()
    share = torch.where(y > 0, 0.5 / 40, 0.5 / 90)
    error = share * (torch.sigmoid(x @ weights + bias) - y)
    assert abs(float(error.sum())) < 1e-4
    assert torch.allclose(x.T @ error, -1e-2 * weights * x.var(0, unbiased=False), atol=1e-3)


def test_the_prior_moves_the_bias_alone():
    positive, negative = torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [-1.0]])
    (weights, bias), (same, moved) = (logistic_regression(positive, negative, prior) for prior in (0.5, 0.9))
    assert torch.equal(weights, same)
    assert float(moved - bias) == pytest.approx(np.log(9))


def test_pooled_states_are_those_of_the_runtime(tiny_bundle, made):
    model, examples, _ = made("treepiece")
    from treepiece.models.encoder import encode_utterances
    from treepiece.models.trained import TrainedModel
    from treepiece.scope import pool

    subwords = Parser(tiny_bundle).subwords
    trained = TrainedModel(None, model, subwords)
    texts = [example.frame.utterance for example in examples[:20]]
    (pooled,) = pooled_groups(trained, [texts], NoProgress())
    for text, row in zip(texts, pooled.numpy(), strict=True):
        with torch.no_grad():
            states = encode_utterances(model.encoder, subwords.encode_batch([text])).states[0].numpy()
        assert row == pytest.approx(pool(states), abs=1e-5)


def test_groups_that_look_like_training_rows_are_near():
    rng = np.random.default_rng(0)
    inside, outside = (torch.tensor(rng.normal(size=(60, 4)), dtype=torch.float32) for _ in range(2))
    inside[:, 0] += 4
    outside[:10, 0] += 4  # the first group
    groups = [f"group {place // 10}" for place in range(60)]
    assert near_groups(inside, outside, groups, rng) == ["group 0"]


def test_texts_are_joined():
    assert join_texts("Wake me at 8.", "Play jazz", ". ") == "Wake me at 8. Play jazz"
    assert join_texts("a", "", " then ") == "a then "


def test_gibberish_has_words():
    rng = np.random.default_rng(0)
    assert all(1 <= len(gibberish(rng).split()) <= 4 for _ in range(50))


def test_training_learns_the_scope(recipe, tmp_path):
    others = tmp_path / "others.txt"
    others.write_text("\n".join(f"alpha beta {number}" for number in range(30)))
    rows = rows_of(60)
    train(rows, tmp_path / "model", recipe=recipe(scope=True, epochs=1), out_of_scope=others)
    train(rows, tmp_path / "again", recipe=recipe(scope=True, epochs=1), out_of_scope=others)
    first, second = (json.loads((tmp_path / name / "scope.json").read_bytes()) for name in ("model", "again"))
    assert first == second
    assert not (tmp_path / "model" / "run").exists()


def test_an_out_of_scope_row_that_is_a_training_row(recipe, tmp_path):
    others = tmp_path / "others.txt"
    rows = rows_of(60)
    others.write_text(rows[0].frame.utterance.upper())
    with pytest.raises(DataError, match=r"others\.txt: in scope, because training rows have them, too"):
        train(rows, tmp_path / "model", recipe=recipe(scope=True), out_of_scope=others)
    assert not (tmp_path / "model").exists()


def test_the_fit_is_bounded(monkeypatch, made):
    model, *_ = made("treepiece")
    from treepiece.models.trained import TrainedModel
    from treepiece.training import scoping

    sizes = []

    def pooled(trained, groups, progress):
        sizes.extend(map(len, groups))
        return [torch.randn(len(texts), 6) for texts in groups]

    monkeypatch.setattr(scoping, "pooled_groups", pooled)
    utterances = [f"wake me and call {number}" for number in range(2 * MAX_ROWS)]
    others = [Request(f"request {number}", str(number % 7)) for number in range(20_000)]
    fit_scope(TrainedModel(None, model, None), utterances, others, seed=0, progress=NoProgress())
    assert max(sizes) <= 2 * MAX_ROWS
    assert sum(sizes) < 16_000
