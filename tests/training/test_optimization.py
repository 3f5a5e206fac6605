"""The learning rates, and fewer bits in matrix products: nearly the same losses, and all the bits in the weights."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from torch.nn.functional import scaled_dot_product_attention

from treepiece.training.optimization import multiplying_in, rate_factor
from treepiece.training.recipe import MatrixPrecision, OptimizerConfig, Schedule

CPU = torch.device("cpu")


def losses_and_gradient(model, loss, precision):
    model.zero_grad()
    with multiplying_in(precision, CPU):
        losses = loss(range(40))
    losses["loss"].backward()
    losses = {name: loss.detach() for name, loss in losses.items()}
    found = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert all(gradient.dtype == torch.float32 for gradient in found)
    return losses, torch.cat([gradient.flatten() for gradient in found])


@pytest.mark.parametrize("kind", ["treepiece", "ar", "nar"])
def test_losses_and_gradients_are_nearly_those_of_floats(kind, made):
    changes = (
        {"reranker_loss_weight": 1.0, "units": {"compositional": True, "label_logits": True}}
        if kind == "treepiece"
        else {}
    )
    model, _, loss = made(kind, **changes)
    exact, right = losses_and_gradient(model, loss, MatrixPrecision.FLOAT32)
    rounded, found = losses_and_gradient(model, loss, MatrixPrecision.BFLOAT16)
    for name, value in exact.items():
        assert rounded[name].dtype == torch.float32
        assert float(rounded[name]) == pytest.approx(float(value), rel=0.01)
        assert float(rounded[name]) != float(value)  # it was rounded
    assert float(torch.cosine_similarity(right, found, dim=0)) > 0.99


def test_attention_keeps_all_bits():
    x = torch.randn(2, 3, 4, 8)
    with multiplying_in(MatrixPrecision.BFLOAT16, CPU):
        product = x @ x.transpose(2, 3)
        found = scaled_dot_product_attention(x.bfloat16(), x.bfloat16(), x.bfloat16())
        exact = scaled_dot_product_attention(x, x, x)
    assert product.dtype == torch.bfloat16
    assert found.dtype == torch.float32
    assert torch.equal(exact, scaled_dot_product_attention(x, x, x))


def test_the_rate_rises_then_falls():
    config = OptimizerConfig(warmup=0.1, floor=0.02)
    factors = [rate_factor(config, step, 100, 0) for step in range(100)]
    assert factors[:10] == pytest.approx([0.1 * n for n in range(1, 11)])
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert factors[-1] == pytest.approx(0.02, abs=1e-3)


def test_the_paper_s_rate_falls_by_epochs():
    config = OptimizerConfig(schedule=Schedule.EXPONENTIAL, warmup=0.05, decay=0.9)
    assert rate_factor(config, 50, 1000, 5) == 0.9**5
    assert rate_factor(config, 24, 1000, 2) == 0.5
