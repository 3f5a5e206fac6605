"""A ranker learns to tell gold trees from what a beam confuses them with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.decoding.ranking import CANDIDATES  # noqa: E402
from treepiece.errors import RecipeError  # noqa: E402
from treepiece.models.utterances import encode_utterances  # noqa: E402
from treepiece.training.examples import make_examples  # noqa: E402
from treepiece.training.objectives import make_objective  # noqa: E402
from treepiece.training.observer import Observer  # noqa: E402
from treepiece.training.preparation import new_model  # noqa: E402
from treepiece.training.weighing import _TEMPERATURES, _WEIGHTS, best_weight, fit_weights  # noqa: E402

beams = st.lists(
    st.integers(2, 5).flatmap(
        lambda n: st.tuples(
            st.lists(st.floats(-9, -0.1), min_size=n, max_size=n).map(np.array),
            st.lists(st.floats(-5, 5), min_size=n, max_size=n).map(np.array),
            st.integers(0, n - 1),
        )
    ),
    max_size=6,
)


@pytest.fixture
def made(toy, recipe):
    settings = recipe(ranking={"weight": 1.0, "share": 0.5}, label_smoothing=0.0)
    trained = new_model(toy(80), settings, Observer(), None)
    trained.model.eval()
    examples = make_examples(toy(80), trained.subwords)[0]
    return trained.model, examples, make_objective(trained, examples, settings)


@given(beams)
def test_the_weight_is_the_best_of_all(beams):
    def value(weight, temperature):
        p = [np.exp((log_p + weight * scores) / temperature) for log_p, scores, _ in beams]
        return sum(np.log(few[right] / few.sum()) for few, (_, _, right) in zip(p, beams, strict=True))

    def best(weight):
        return max(value(weight, temperature) for temperature in _TEMPERATURES)

    assert best(best_weight(beams)) >= max(map(best, _WEIGHTS[::5])) - 1e-6


def test_an_opinion_that_repeats_another_and_is_right_more_often_counts():
    # Both are sure of themselves. The first is wrong in three of ten beams, the second in one, which is not among them.
    log_p = [np.log([0.9, 0.1])] * 10
    scores = [np.log([0.9, 0.1])] * 6 + [np.log([0.1, 0.9])] * 4
    right = [0] * 7 + [1] * 3
    beams = list(zip(log_p, scores, right, strict=True))
    assert best_weight(beams) > 1  # without a temperature it would be less


def test_the_loss_is_that_of_the_gold_tree_among_the_candidates(made):
    model, examples, objective = made
    with torch.no_grad():
        for place in range(20):
            gold = examples[place].frame.skeleton
            memory = encode_utterances(model.encoder, [examples[place].subwords])
            (found,) = model.search(memory, beam=CANDIDATES)
            others = [c.skeleton for c in found if c.skeleton != gold and len(c.unit_ids) <= 4][: CANDIDATES - 1]
            scores = model.rank(model.read([[gold, *others]], memory))
            wanted = float(-scores.log_softmax(0)[0])
            assert float(objective([place])["ranking"]) == pytest.approx(wanted, abs=1e-4)


def test_the_ranker_learns(made):
    model, _, objective = made
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    before = float(objective(range(40))["ranking"].detach())
    for _ in range(30):
        objective(range(40))["loss"].backward()
        optimizer.step()
        optimizer.zero_grad()
    assert float(objective(range(40))["ranking"].detach()) < before / 2


def test_where_the_search_is_sure_there_is_no_second_look(made):
    model, examples, _ = made
    utterances = [example.subwords for example in examples[:20]]
    model.ranks = False
    greedy = model.parse(utterances)
    model.ranks = True
    model.sure.fill_(0.0)
    assert model.parse(utterances) == greedy
    model.sure.fill_(1.1)
    ranked = model.parse(utterances)
    for few, all_of_them in zip(ranked, model.parse(utterances, beam=CANDIDATES), strict=True):
        assert few == all_of_them[:1]


def test_the_weight_is_part_of_the_model(made):
    model, examples, _ = made
    model.spans.ranker.weight.fill_(-1.0)
    fit_weights(model, examples)
    assert float(model.state_dict()["spans.ranker.weight"]) in _WEIGHTS.astype(np.float32)


def test_a_model_without_a_ranker_gets_one_and_one_with_it_keeps_it(toy, recipe):
    plain, ranked = recipe(), recipe(ranking={"weight": 0.5})
    old = new_model(toy(60), plain, Observer(), None)
    new = new_model(toy(60), ranked, Observer(), old)
    assert new.definition.ranked
    again = new_model(toy(60), plain, Observer(), new)
    assert again.definition.ranked
    for name, weight in new.model.spans.ranker.state_dict().items():
        assert torch.equal(again.model.spans.ranker.state_dict()[name], weight)


@pytest.mark.parametrize("ranking", [{"weight": -1.0}, {"share": 0.0}, {"share": 1.5}])
def test_settings_that_make_no_sense_are_refused(ranking, recipe):
    with pytest.raises(RecipeError, match="ranking"):
        recipe(ranking=ranking)
