"""Decoders that get a batch in parts see every row once, and nothing that is not there."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from treepiece.models.layers import set_dropout  # noqa: E402
from treepiece.models.utterances import Memory, pad  # noqa: E402
from treepiece.training.losses import IGNORED  # noqa: E402
from treepiece.training.objectives import make_objective  # noqa: E402
from treepiece.training.objectives.parts import in_parts, parts_by_size  # noqa: E402
from treepiece.training.observer import Observer  # noqa: E402
from treepiece.training.preparation import new_model, training_examples  # noqa: E402

sizes_of_rows = st.lists(st.integers(1, 9), min_size=1, max_size=20)


@given(sizes_of_rows, st.integers(1, 6))
def test_parts_have_every_row_once_and_the_smaller_ones_first(sizes, n_parts):
    parts = parts_by_size(sizes, n_parts)
    assert sorted(row for part in parts for row in part) == list(range(len(sizes)))
    assert len(parts) <= n_parts
    assert all(parts)
    ordered = [sizes[row] for part in parts for row in part]
    assert ordered == sorted(ordered)


@given(sizes_of_rows)
def test_what_is_made_in_parts_is_made_of_the_right_rows(sizes):
    numbers = torch.arange(len(sizes))
    memory = Memory(numbers.float().view(-1, 1, 1), torch.ones(len(sizes), 1).bool(), torch.ones(len(sizes), 1).bool())

    def work(rows, memory):
        targets = pad([[row] * sizes[row] for row in rows], IGNORED)
        return targets, memory.states.expand(-1, targets.shape[1], 1)

    targets, states = in_parts(sizes, memory, work)
    assert torch.bincount(targets, minlength=len(sizes)).tolist() == sizes
    assert torch.equal(states.squeeze(1), targets.float())


@pytest.mark.parametrize("kind", ["treepiece", "ar", "nar"])
def test_without_dropout_a_model_in_training_gives_the_same_loss_twice(kind, toy, recipe):
    settings = recipe(model=kind, decoder={"n_heads": 2, "longest": 64, "dropout": 0.5})
    trained = new_model(toy(40), settings, Observer(), None)
    objective = make_objective(trained, training_examples(toy(40), trained, Observer()), settings)
    trained.model.train()
    with torch.no_grad():
        assert objective(range(20))["loss"] != objective(range(20))["loss"]
        set_dropout(trained.model, 0.0)
        assert objective(range(20))["loss"] == objective(range(20))["loss"]
