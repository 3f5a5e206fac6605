"""What the graphs of all models have in common."""

from __future__ import annotations

import copy
from typing import Any, cast

import torch
from torch import Tensor, nn

from treepiece.models.encoder import Encoder
from treepiece.models.layers import DecoderLayer


class States(nn.Module):
    """The encoder for utterances that are all of one length, so that nothing has to be masked."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.model = copy.deepcopy(encoder.model).eval()
        # Written out as products and a softmax, attention is what ONNX Runtime knows to fuse.
        cast(Any, self.model.config)._attn_implementation = "eager"

    def forward(self, ids: Tensor) -> Tensor:
        """Return the states. Shape: ids (batch, n), result (batch, n, width)."""
        return cast(Tensor, self.model(input_ids=ids).last_hidden_state)


def linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """Return a linear layer with these weights."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight = nn.Parameter(weight.detach())
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach())
    return layer


class AfterSelfAttention(nn.Module):
    """The rest of a decoder layer: attention over keys and values that are given, feed-forward.

    Keys and values come without their biases: that of the keys adds the same to all scores, which a softmax does not
    see, and that of the values goes through the weighted mean as it is, so that it can be added after it.
    """

    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__()
        cross = layer.cross_attention
        self.n_heads = cross.n_heads
        self.query = cross.query
        self.out = linear(cross.out.weight, cross.out.bias + cross.out.weight @ cross.value.bias)
        self.feed_forward = layer.feed_forward
        self.cross_norm, self.forward_norm = layer.cross_norm, layer.forward_norm

    def forward(self, x: Tensor, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return the next states. Shape: x and query (batch, m, width), keys and values (batch, n, width)."""
        x = self.cross_norm(x + self.out(attend(query, keys, values, self.n_heads)))
        return cast(Tensor, self.forward_norm(x + self.feed_forward(x)))


def attend(query: Tensor, keys: Tensor, values: Tensor, n_heads: int) -> Tensor:
    """Return what multi-head attention finds, as one operation of ONNX Runtime; for export only."""
    return torch.onnx.ops.symbolic(
        "com.microsoft::MultiHeadAttention",
        (query, keys, values),
        {"num_heads": n_heads},
        dtype=query.dtype,
        shape=query.shape,
        version=1,
    )
