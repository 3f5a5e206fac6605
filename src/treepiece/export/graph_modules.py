"""PyTorch modules as ONNX graphs, and the modules that the graphs of all models share.

Everything that does not depend on the utterance is computed before export, in double precision, so that rounding does
not depend on the number of threads: a model exported twice has the same graphs. Everything that is computed from the
states of the utterance is a single product.
"""

from __future__ import annotations

import copy
import logging
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import onnx
import torch
from onnx import ModelProto
from torch import Tensor, nn

from treepiece.models.encoder import Encoder
from treepiece.models.layers import Attention, DecoderLayer, Pointer
from treepiece.models.token_decoder import TokenDecoder
from treepiece.runtime.sessions import Input, Signature, open_session

NEVER = -1e30
"""The logit of everything that is not allowed."""
_SUBWORDS = 5
_SIZES = {"batch": 2, "n": _SUBWORDS + 2, "subwords": _SUBWORDS, "rows": 3, "frames": 3, "steps": 3, "t": 4, "m": 9}
"""Sizes of the axes in examples: not 1, so that tracing takes none for a constant."""


@dataclass(frozen=True)
class Graph:
    """A module with the signature of its graph; `n_symbols` counts the tokens that are not pointers."""

    module: nn.Module
    signature: Signature
    n_symbols: int

    def example(self, name: str) -> Tensor:
        """Return an example input, to trace the graph with."""
        kind, axes = self.signature.inputs[name]
        sizes = {**_SIZES, "tokens": self.n_symbols + _SUBWORDS}
        shape = [sizes[axis] if isinstance(axis, str) else axis for axis in axes]
        return torch.ones(shape, dtype=getattr(torch, "float32" if kind == "float" else kind))


def to_onnx(graph: Graph) -> ModelProto:
    """Return the graph of a module, with operations fused by ONNX Runtime.

    The graph is optimised here, once, so that sessions open faster.
    """
    inputs = graph.signature.inputs
    with _quietly(), torch.no_grad():
        program = torch.onnx.export(
            graph.module.eval(),
            tuple(map(graph.example, inputs)),
            input_names=list(inputs),
            output_names=list(graph.signature.outputs),
            dynamic_shapes=[_named_axes(one) for one in inputs.values()],
            dynamo=True,
            verbose=False,
        )
    assert program is not None  # the exporter returns None only if it writes a file itself
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.onnx"
        open_session(program.model_proto.SerializeToString(), optimize_to=path)
        return onnx.load(path)


def _named_axes(one: Input) -> dict[int, str]:
    return {place: axis for place, axis in enumerate(one.axes) if isinstance(axis, str)}


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence the exporter's warnings, which are about its own internals."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)


Pair = tuple[Tensor, Tensor]

_ATTENTION = "com.microsoft::MultiHeadAttention"
_KNOWN_ATTENTION = {f"{name}SelfAttention" for name in ("Bert", "Camembert", "Electra", "Roberta", "XLMRoberta")}
"""Attention modules that consist of queries, keys and values only and can be fused. All others are exported
unchanged."""


class States(nn.Module):
    """The encoder for utterances of one length, which needs no mask."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.model = copy.deepcopy(encoder.model).eval()
        cast(Any, self.model).set_attn_implementation("eager")  # plain operations for unfused attention
        for module in list(self.model.modules()):
            for name, child in module.named_children():
                if type(child).__name__ in _KNOWN_ATTENTION:
                    setattr(module, name, EncoderAttention(child))

    def forward(self, ids: Tensor) -> Tensor:
        """Return the states. Shape: ids (batch, n), result (batch, n, width)."""
        return cast(Tensor, self.model(input_ids=ids).last_hidden_state)


class EncoderAttention(nn.Module):
    """The self-attention of BERT and similar encoders, as one product and one operation of ONNX Runtime."""

    def __init__(self, own: nn.Module) -> None:
        super().__init__()
        parts = [cast(nn.Linear, own.get_submodule(name)) for name in ("query", "key", "value")]
        self.n_heads = cast(int, own.num_attention_heads)
        self.project = linear(torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts]))

    def forward(self, hidden_states: Tensor, **_: object) -> tuple[Tensor, None]:
        """Return the attention output, without weights. Shape: (batch, n, width)."""
        query, keys, values = self.project(hidden_states).chunk(3, dim=2)
        return attend(query, keys, values, self.n_heads), None


def linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """Return a linear layer with these weights."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight = nn.Parameter(weight.detach())
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach())
    return layer


def _out_after_bias(attention: Attention) -> nn.Linear:
    """Return the output layer of an attention whose values come without their bias."""
    out, values = attention.out, attention.value
    bias = out.bias.double() + out.weight.double() @ values.bias.double()
    return linear(out.weight, bias.float())


class AfterSelfAttention(nn.Module):
    """The rest of a decoder layer: attention over given keys and values, and feed-forward.

    Keys and values come without their biases: the bias of the keys adds the same to all scores, which does not change
    their softmax, and the bias of the values passes through the weighted mean unchanged, so it can be added afterwards.
    """

    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__()
        cross = layer.cross_attention
        self.n_heads = cross.n_heads
        self.query = cross.query
        self.out = _out_after_bias(cross)
        self.feed_forward = layer.feed_forward
        self.cross_norm, self.forward_norm = layer.cross_norm, layer.forward_norm

    def forward(self, x: Tensor, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return the next states. Shape: x and query (batch, m, width), keys and values (batch, n, width)."""
        x = self.cross_norm(x + self.out(attend(query, keys, values, self.n_heads)))
        return cast(Tensor, self.forward_norm(x + self.feed_forward(x)))


class SelfAttention(nn.Module):
    """The first part of a decoder layer; as in `AfterSelfAttention`, keys and values have no biases."""

    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__()
        own = layer.self_attention
        self.n_heads = own.n_heads
        nothing = torch.zeros_like(own.key.bias)
        self.project = linear(
            torch.cat([own.query.weight, own.key.weight, own.value.weight]),
            torch.cat([own.query.bias, nothing, nothing]),
        )
        self.out = _out_after_bias(own)
        self.norm = layer.self_norm

    def first(self, x: Tensor) -> tuple[Tensor, Pair]:
        """Return the state of a first token, which sees only itself, and the past of the next.

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
        """Return the states of tokens that see the first `used` tokens of their row.

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


class TokenGraph(nn.Module):
    """The shared parts of a token decoder's graphs: its tables, its two layers, and its products with the utterance.

    The pointer's two projections are merged into one matrix, on the side of the states, so that a pointer costs a
    single product with the keys:

        (Q x + q) . (K s + k) = x . Q' (K s + k) + q . (K s + k)

    The first is a product with a vector for each state, the second a number for each. Neither can be left out: pointers
    share their softmax with labels.
    """

    def __init__(self, decoder: TokenDecoder, *others: nn.Linear) -> None:
        super().__init__()
        layers = [cast(DecoderLayer, layer) for layer in decoder.layers]
        self.below, self.above = map(Layer, layers)
        crosses = [layer.cross_attention for layer in layers]
        parts = [(part.weight, torch.zeros_like(part.bias)) for cross in crosses for part in (cross.key, cross.value)]
        parts += [(layer.weight, layer.bias) for layer in others]
        parts += _fold_keys(decoder.pointer)
        self.sizes = [len(weight) for weight, _ in parts]
        self.project = linear(torch.cat([weight for weight, _ in parts]), torch.cat([bias for _, bias in parts]))
        self.symbol_table, self.place_table = (nn.Parameter(table.detach()) for table in decoder.embedding.tables)
        self.norm = decoder.embedding.norm
        self.symbol_scores = linear(decoder.embedding.symbols[: decoder.n_symbols])
        self.symbol_bias = nn.Parameter(decoder.bias.detach())

    def read(self, states: Tensor) -> Sequence[Tensor]:
        """Return keys and values of each layer, outputs of the other layers, pointers, and biases of tokens.

        Shape: states (batch, n, width), results (batch, n, width), but pointers (batch, width, n - 2) and biases
        (batch, 1, tokens), with n - 2 more tokens than symbols.
        """
        *parts, pointers, pointer_bias = self.project(states).split(self.sizes, dim=2)
        symbols = self.symbol_bias.expand(states.shape[0], 1, -1)
        biases = torch.cat([symbols, pointer_bias[:, 1:-1].transpose(1, 2)], dim=2)
        return *parts, pointers[:, 1:-1].transpose(1, 2), biases

    def classify(self, x: Tensor, pointers: Tensor, biases: Tensor) -> Tensor:
        """Return the logits of symbols and pointers. Shape: x (batch, m, width), result (batch, m, tokens)."""
        return torch.cat([self.symbol_scores(x), x @ pointers], dim=2) + biases

    def blanks(self) -> Tensor:
        """Return the input vectors of blank tokens. Shape: (1, max_length, width)."""
        x: Tensor = self.norm(self.symbol_table[-1] + self.place_table)
        return x.unsqueeze(0).detach()


def _fold_keys(pointer: Pointer) -> list[tuple[Tensor, Tensor]]:
    """Return matrices and biases that turn a state into the two terms of a pointer's score: a vector, and a number.

    Shape: matrices (width, width) and (1, width), biases (width,) and (1,).
    """
    scale = pointer.query.in_features**-0.5
    sides = pointer.query.weight.T.double() * scale, pointer.query.bias.unsqueeze(0).double() * scale
    weight, bias = pointer.key.weight.double(), pointer.key.bias.double()
    return [((side @ weight).float(), (side @ bias).float()) for side in sides]


def attend(
    query: Tensor, keys: Tensor, values: Tensor, n_heads: int, used: Tensor | None = None, *, causal: bool = False
) -> Tensor:
    """Return the output of multi-head attention, as one operation of ONNX Runtime; for export only.

    Keys and values may also come split into heads, (batch, heads, n, width / heads), which saves ONNX Runtime the
    split. With `used`, (batch,), only this many of the first keys of each row are visible; with `causal`, a query sees
    the keys up to its own position.
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
    """Return the result of `attend` for one more token, and the keys and values of all tokens, its own last.

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
    """Return x split into heads. Shape: x (batch, n, width), result (batch, heads, n, width / heads)."""
    return x.view(x.shape[0], x.shape[1], n_heads, -1).transpose(1, 2)
