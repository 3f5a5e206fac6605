"""A model between one and others that were trained from it."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.data.examples import make_examples
from treepiece.errors import RecipeError
from treepiece.progress import NoProgress
from treepiece.training.averaging import average, best_average
from treepiece.training.prediction import predict
from treepiece.training.preparation import new_model


@torch.no_grad()
def shake(trained, by):
    torch.manual_seed(by)
    for weight in trained.model.parameters():
        weight.add_(torch.randn_like(weight), alpha=0.1 * by)
    return trained


@pytest.fixture(params=["treepiece", "ar", "nar"])
def pair(request, toy, recipe):
    """A model, and another that was trained from it with new labels, and with a reranker."""
    settings = recipe(kind=request.param)
    first = shake(new_model(toy(40), settings, NoProgress(), None), 1)
    before = {name: weight.clone() for name, weight in first.model.state_dict().items()}
    changed = recipe(kind=request.param, reranker_loss_weight=1.0) if request.param == "treepiece" else settings
    second = shake(new_model([*toy(40), *toy(300, seed=3)], changed, NoProgress(), first), 2)
    first.model.load_state_dict(before)  # both had one encoder
    assert len(second.definition.labels) > len(first.definition.labels)
    return first, second


def test_a_weight_of_zero_is_the_second_model(pair):
    first, second = pair
    for name, weight in average(first, [second], 0.0).model.state_dict().items():
        assert torch.equal(weight, second.model.state_dict()[name]), name


def test_weights_are_between_the_two_and_what_is_new_stays(pair):
    first, second = pair
    half, whole = (average(first, [second], share).model.state_dict() for share in (0.5, 1.0))
    known = first.model.state_dict()
    for name, weight in second.model.state_dict().items():
        assert torch.allclose(half[name], (weight + whole[name]) / 2, atol=1e-6), name
        if name not in known:
            assert torch.equal(whole[name], weight), name
        elif known[name].shape == weight.shape and "tables.0" not in name:
            assert torch.equal(whole[name], known[name]), name


def test_the_best_of_several_is_kept_and_says_so(pair, toy):
    first, second = pair
    examples = make_examples(toy(20, seed=5), second.subwords)[0]
    seen = []
    progress = NoProgress()
    progress.update = lambda stage, done, total: seen.append((done, total))
    best = best_average(first, [second], (0.0, 0.5, 1.0), examples, progress)
    assert seen[-1] == (3 * len(examples), 3 * len(examples))
    assert seen == sorted(seen)
    assert best.metadata["average"]["first_weight"] in (0.0, 0.5, 1.0)
    assert best.metadata["validation"] == {
        "rows": 20,
        "em": pytest.approx(sum(one.is_exact for one in predict(best.model, examples, best.decoding)) / 20),
    }


def test_models_that_have_nothing_to_do_with_each_other_are_refused(pair, toy, recipe):
    first, second = pair
    kind = "nar" if first.definition.kind == "ar" else "ar"
    other = new_model(toy(40), recipe(kind=kind), NoProgress(), None)
    for start, end in ((second, first), (other, second), (first, other)):
        with pytest.raises(RecipeError, match="a model was not trained from the first"):
            average(start, [end], 0.5)


def test_several_others_count_alike(pair):
    first, second = pair
    third = shake(copy.deepcopy(second), 3)
    alone = [average(first, [other], 0.3).model.state_dict() for other in (second, third)]
    for name, weight in average(first, [second, third], 0.3).model.state_dict().items():
        assert torch.allclose(weight, (alone[0][name] + alone[1][name]) / 2, atol=1e-6), name


def test_models_that_know_different_labels_are_refused(pair, toy, recipe):
    first, second = pair
    kind = str(first.definition.kind)
    settings = recipe(kind=kind, reranker_loss_weight=1.0) if kind == "treepiece" else recipe(kind=kind)
    other = new_model(toy(40), settings, NoProgress(), first)
    with pytest.raises(RecipeError, match="the models know different labels or units"):
        average(first, [second, other], 0.5)
