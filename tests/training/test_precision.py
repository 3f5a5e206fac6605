"""Fewer bits in matrix products: nearly the same losses and gradients, and all the bits in everything that is kept."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from treepiece.training.precision import Precision, multiplying_in  # noqa: E402

CPU = torch.device("cpu")


def losses_and_gradient(model, objective, precision):
    model.zero_grad()
    with multiplying_in(precision, CPU):
        losses = objective(range(40))
    losses["loss"].backward()
    losses = {name: loss.detach() for name, loss in losses.items()}
    found = [weight.grad for weight in model.parameters() if weight.grad is not None]
    assert all(gradient.dtype == torch.float32 for gradient in found)
    return losses, torch.cat([gradient.flatten() for gradient in found])


@pytest.mark.parametrize("kind", ["treepiece", "ar", "nar"])
def test_losses_and_gradients_are_nearly_those_of_floats(kind, made):
    changes = {"judge_weight": 1.0, "units": {"composed": True, "hinted": True}} if kind == "treepiece" else {}
    model, _, objective = made(kind, **changes)
    exact, right = losses_and_gradient(model, objective, Precision.FLOAT32)
    rounded, found = losses_and_gradient(model, objective, Precision.BFLOAT16)
    for name, loss in exact.items():
        assert rounded[name].dtype == torch.float32
        assert float(rounded[name]) == pytest.approx(float(loss), rel=0.01)
        assert float(rounded[name]) != float(loss)  # it was rounded
    assert float(torch.cosine_similarity(right, found, dim=0)) > 0.99


def test_attention_keeps_all_bits():
    x = torch.randn(2, 3, 4, 8)
    with multiplying_in(Precision.BFLOAT16, CPU):
        product = x @ x.transpose(2, 3)
        found = scaled_dot_product_attention(x.bfloat16(), x.bfloat16(), x.bfloat16())
        exact = scaled_dot_product_attention(x, x, x)
    assert product.dtype == torch.bfloat16
    assert found.dtype == torch.float32
    assert torch.equal(exact, scaled_dot_product_attention(x, x, x))
