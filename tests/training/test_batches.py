import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import torch
from hypothesis import given
from hypothesis import strategies as st

from treepiece.training.batches import plan_epoch
from treepiece.training.losses import IGNORED, cross_entropy


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


def test_batches_hold_like_lengths_and_differ_by_epoch_and_branch():
    lengths = [n % 20 + 1 for n in range(1000)]
    plan = plan_epoch(lengths, 10, seed=0, epoch=0)
    assert (
        sum(max(lengths[place] for place in places) - min(lengths[place] for place in places) for places in plan) < 100
    )
    assert plan != plan_epoch(lengths, 10, seed=0, epoch=1)
    assert plan != plan_epoch(lengths, 10, seed=0, epoch=0, branch=1) != plan_epoch(lengths, 10, seed=0, epoch=1)


def test_cross_entropy_is_that_of_torch_where_all_classes_are_possible():
    logits, targets = torch.randn(3, 4, 7), torch.tensor([[0, 1, 2, IGNORED]] * 3)
    for smoothing in (0.0, 0.1):
        expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=smoothing)
        torch.testing.assert_close(cross_entropy(logits, targets, smoothing), expected)


def test_impossible_classes_cost_nothing():
    logits, targets = torch.randn(3, 7), torch.tensor([0, 1, 2])
    lowest = torch.full((3, 5), torch.finfo(torch.float32).min)
    wider = torch.cat([logits, lowest], 1)
    torch.testing.assert_close(cross_entropy(wider, targets, 0.1), cross_entropy(logits, targets, 0.1))
    assert cross_entropy(logits, torch.full((3,), IGNORED)) == 0
