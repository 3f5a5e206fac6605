"""What the graphs of all models have in common."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from treepiece.models.encoder import Encoder
from treepiece.models.layers import DecoderLayer

Pair = tuple[Tensor, Tensor]

_ATTENTION = "com.microsoft::MultiHeadAttention"
_KNOWN_ATTENTION = {f"{name}SelfAttention" for name in ("Bert", "Camembert", "Electra", "Roberta", "XLMRoberta")}
"""Of encoders whose attention has no more to it than queries, keys and values; others are exported as they are."""


class States(nn.Module):
    """The encoder for utterances that are all of one length, so that nothing has to be masked."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.model = copy.deepcopy(encoder.model).eval()
        cast(Any, self.model.config)._attn_implementation = "eager"  # plain operations, for what is not known below
        for module in list(self.model.modules()):
            for name, child in module.named_children():
                if type(child).__name__ in _KNOWN_ATTENTION:
                    setattr(module, name, EncoderAttention(child))

    def forward(self, ids: Tensor) -> Tensor:
        """Return the states. Shape: ids (batch, n), result (batch, n, width)."""
        return cast(Tensor, self.model(input_ids=ids).last_hidden_state)


class EncoderAttention(nn.Module):
    """The self-attention of BERT and its kin, as one product and one operation of ONNX Runtime."""

    def __init__(self, own: nn.Module) -> None:
        super().__init__()
        parts = [cast(nn.Linear, own.get_submodule(name)) for name in ("query", "key", "value")]
        self.n_heads = cast(int, own.num_attention_heads)
        self.project = linear(torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts]))

    def forward(self, hidden_states: Tensor, **_: object) -> tuple[Tensor, None]:
        """Return what attention finds, and no weights. Shape: (batch, n, width)."""
        query, keys, values = self.project(hidden_states).chunk(3, dim=2)
        return attend(query, keys, values, self.n_heads), None


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


class SelfAttention(nn.Module):
    """The first part of a decoder layer; as in `AfterSelfAttention`, keys and values go without their biases."""

    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__()
        own = layer.self_attention
        self.n_heads = own.n_heads
        nothing = torch.zeros_like(own.key.bias)
        self.project = linear(
            torch.cat([own.query.weight, own.key.weight, own.value.weight]),
            torch.cat([own.query.bias, nothing, nothing]),
        )
        self.out = linear(own.out.weight, own.out.bias + own.out.weight @ own.value.bias)
        self.norm = layer.self_norm

    def first(self, x: Tensor) -> tuple[Tensor, Pair]:
        """Return the state of a first token, which finds nothing but itself, and the past of the next.

        Shape: x (batch, 1, width), past (batch, heads, 1, width / heads).
        """
        key, value = nn.functional.linear(x, self.project.weight[x.shape[2] :]).chunk(2, dim=2)
        return self._add(x, value), (heads_apart(key, self.n_heads), heads_apart(value, self.n_heads))

    def next(self, x: Tensor, past: Pair) -> tuple[Tensor, Pair]:
        """Return the state of one more token, and the past of the next.

        Shape: x (batch, 1, width), past (batch, heads, t, width / heads), which grows by one.
        """
        query, key, value = self.project(x).chunk(3, dim=2)
        found, keys, values = attend_with_past(query, key, value, past, self.n_heads)
        return self._add(x, found), (keys, values)

    def together(self, x: Tensor, projected: Sequence[Tensor], used: Tensor) -> Tensor:
        """Return the states of tokens that see each other, the first `used` of each row.

        Shape: x and its query, key and value (batch, m, width), used (batch,).
        """
        query, keys, values = projected
        return self._add(x, attend(query, keys, values, self.n_heads, used))

    def in_order(self, x: Tensor) -> Tensor:
        """Return the states of tokens that see themselves and those before them. Shape: x (batch, m, width)."""
        query, keys, values = self.project(x).chunk(3, dim=2)
        return self._add(x, attend(query, keys, values, self.n_heads, causal=True))

    def _add(self, x: Tensor, found: Tensor) -> Tensor:
        return cast(Tensor, self.norm(x + self.out(found)))


class Layer(nn.Module):
    """Both parts of a decoder layer."""

    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__()
        self.self_attention = SelfAttention(layer)
        self.rest = AfterSelfAttention(layer)

    def look(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return the states after attention over an utterance. Shape: x (batch, m, width)."""
        return cast(Tensor, self.rest(x, self.rest.query(x), keys, values))


def attend(
    query: Tensor, keys: Tensor, values: Tensor, n_heads: int, used: Tensor | None = None, *, causal: bool = False
) -> Tensor:
    """Return what multi-head attention finds, as one operation of ONNX Runtime; for export only.

    Keys and values may also come with their heads apart, (batch, heads, n, width / heads), which saves ONNX Runtime
    doing that. With `used`, (batch,), only so many of the first keys of each are looked at; `causal` lets a query look
    at the keys up to its own place.
    """
    return torch.onnx.ops.symbolic(
        _ATTENTION,
        (query, keys, values) if used is None else (query, keys, values, None, used),
        {"num_heads": n_heads, "unidirectional": int(causal)},
        dtype=query.dtype,
        shape=query.shape,
        version=1,
    )


def attend_with_past(query: Tensor, key: Tensor, value: Tensor, past: Pair, n_heads: int) -> Sequence[Tensor]:
    """Return what `attend` does for one more token, and the keys and values of all tokens, its own at the end.

    Shape: query, key and value (batch, 1, width), past (batch, heads, t, width / heads), each.
    """
    batch, heads, t, size = past[0].shape
    grown = batch, heads, t + 1, size
    return torch.onnx.ops.symbolic_multi_out(
        _ATTENTION,
        (query, key, value, None, None, None, *past),
        {"num_heads": n_heads},
        dtypes=(query.dtype,) * 3,
        shapes=(query.shape, grown, grown),
        version=1,
    )


def heads_apart(x: Tensor, n_heads: int) -> Tensor:
    """Return a head for each. Shape: x (batch, n, width), result (batch, heads, n, width / heads)."""
    return x.view(x.shape[0], x.shape[1], n_heads, -1).transpose(1, 2)
