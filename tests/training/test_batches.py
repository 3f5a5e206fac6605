import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import given
from hypothesis import strategies as st

from treepiece.training.batches import plan_epoch


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=300),
    batch=st.integers(1, 40),
    seed=st.integers(0, 9),
    least=st.integers(1, 3),
)
def test_every_row_is_in_one_batch(lengths, batch, seed, least):
    plan = plan_epoch(lengths, batch, seed=seed, epoch=1, least=least)
    assert sorted(place for places in plan for place in places) == list(range(len(lengths)))
    assert all(len(places) < batch + least for places in plan)
    assert len(plan) == 1 or batch < least or min(map(len, plan)) >= least
    assert plan == plan_epoch(lengths, batch, seed=seed, epoch=1, least=least)


def test_batches_hold_like_lengths_and_differ_by_epoch_and_shuffle_seed():
    lengths = [n % 20 + 1 for n in range(1000)]
    plan = plan_epoch(lengths, 10, seed=0, epoch=0)
    assert (
        sum(max(lengths[place] for place in places) - min(lengths[place] for place in places) for places in plan) < 100
    )
    assert plan != plan_epoch(lengths, 10, seed=0, epoch=1)
    assert plan != plan_epoch(lengths, 10, seed=0, epoch=0, shuffle_seed=1) != plan_epoch(lengths, 10, seed=0, epoch=1)
