"""The graphs of the two baselines.

The autoregressive one has two. `Encode` reads the utterance and takes the first step: the start symbol is always the
same, so what the first layer makes of it before it looks at the utterance is a constant. `Step` is every further token.

The non-autoregressive one is a single graph, `Parallel`. All of its tokens are blank, so what it reads is constant too,
and the first layer's queries, keys and values with it: a row of a table for each place.

In both, everything that is computed from the states of the utterance is one product. The pointer is part of it: its two
projections are one matrix, on the side of the states, so that a place costs a product with the keys and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from treepiece.export.graphs import Graph
from treepiece.export.modules import Layer, States, heads_apart, linear
from treepiece.models.ar import AutoregressiveModel
from treepiece.models.layers import DecoderLayer, Pointer
from treepiece.models.linear import LinearDecoder
from treepiece.models.nar import NonAutoregressiveModel
from treepiece.runtime.ar import KNOWN, PAST
from treepiece.runtime.graphs import ENCODE, PARSE, STEP

_NEVER = -1e30


class Project(nn.Module):
    """What a decoder needs of the states of utterances, all in one product.

    (Q x + q) . (K s + k) = x . Q' (K s + k) + q . (K s + k): the first is a product with a vector for each state, the
    second a number for each. Neither can be left out: pointers share their softmax with labels.
    """

    def __init__(self, decoder: LinearDecoder, *others: nn.Linear) -> None:
        super().__init__()
        crosses = [layer.cross_attention for layer in decoder_layers(decoder)]
        parts = [part.weight for cross in crosses for part in (cross.key, cross.value)]
        biases = [torch.zeros_like(cross.key.bias) for cross in crosses for _ in range(2)]
        for layer in others:
            parts.append(layer.weight)
            biases.append(layer.bias)
        for matrix, bias in _fold(decoder.pointer):
            parts.append(matrix)
            biases.append(bias)
        self.sizes = [len(part) for part in parts]
        self.project = linear(torch.cat(parts), torch.cat(biases))

    def forward(self, states: Tensor) -> Sequence[Tensor]:
        """Return keys and values of each layer, what the other layers make of the states, pointers and their bias.

        Shape: states (batch, n, width), results (batch, n, width), the last (batch, n, 1).
        """
        return cast(Sequence[Tensor], self.project(states).split(self.sizes, dim=2))


class Classify(nn.Module):
    """Scores of labels, the closing bracket and pointers."""

    def __init__(self, decoder: LinearDecoder) -> None:
        super().__init__()
        self.symbols = linear(decoder.embedding.symbols[: decoder.n_symbols])
        self.bias = nn.Parameter(decoder.bias.detach())

    def biases(self, pointer_bias: Tensor) -> Tensor:
        """Return the biases of all tokens. Shape: pointer_bias (batch, n, 1), result (batch, 1, symbols + n - 2)."""
        symbols = self.bias.expand(pointer_bias.shape[0], 1, -1)
        return torch.cat([symbols, pointer_bias[:, 1:-1].transpose(1, 2)], dim=2)

    def forward(self, x: Tensor, pointers: Tensor, bias: Tensor) -> Tensor:
        """Return logits. Shape: x (batch, m, width), pointers (batch, width, n - 2), result (batch, m, tokens)."""
        return torch.cat([self.symbols(x), x @ pointers], dim=2) + bias


class Encode(nn.Module):
    """What the steps need to know of utterances, and the first step."""

    first: Tensor
    first_query: Tensor
    first_past: Tensor

    def __init__(self, model: AutoregressiveModel) -> None:
        super().__init__()
        decoder = model.decoder
        self.states = States(model.encoder)
        self.project = Project(decoder, decoder.pointed)
        self.below, self.above = (Layer(layer) for layer in decoder_layers(decoder))
        self.classify = Classify(decoder)
        x, past = self.below.self_attention.first(_blanks(decoder)[:, :1])
        self.register_buffer("first", x.detach())
        self.register_buffer("first_query", self.below.rest.query(x).detach())
        self.register_buffer("first_past", torch.stack(past).detach())

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Return the logits of the first token, the vectors of pointers, and `KNOWN` and `PAST`.

        Shape: ids (batch, n); logits (batch, 1, tokens), where there are n - 2 tokens more than symbols; the vectors of
        pointers as they are read (batch, n - 1, width), after zeros for what is no pointer; keys and values (batch,
        heads, n, width / heads), of the past with one place; pointers as they are scored (batch, width, n - 2), and the
        biases of all tokens (batch, 1, tokens).
        """
        *parts, pointed, pointers, pointer_bias = self.project(self.states(ids))
        keys_0, values_0, keys_1, values_1 = (heads_apart(part, self.below.rest.n_heads) for part in parts)
        pointed = nn.functional.pad(pointed[:, 1:-1], (0, 0, 1, 0))
        pointers, bias = pointers[:, 1:-1].transpose(1, 2), self.classify.biases(pointer_bias)
        x, query = (part.expand(ids.shape[0], -1, -1) for part in (self.first, self.first_query))
        x = self.below.rest(x, query, keys_0, values_0)
        x, past = self.above.self_attention.first(x)
        x = self.above.look(x, keys_1, values_1)
        logits = self.classify(x, pointers, bias)
        first_past = (part.expand(ids.shape[0], -1, -1, -1) for part in self.first_past)
        return logits, pointed, keys_0, values_0, keys_1, values_1, pointers, bias, *first_past, *past


class Step(nn.Module):
    """The logits of one more token for each row."""

    def __init__(self, decoder: LinearDecoder) -> None:
        super().__init__()
        symbols, places = decoder.embedding.tables
        self.symbols, self.places = nn.Parameter(symbols.detach()), nn.Parameter(places.detach())
        self.norm = decoder.embedding.norm
        self.below, self.above = (Layer(layer) for layer in decoder_layers(decoder))
        self.classify = Classify(decoder)

    def forward(
        self,
        symbols: Tensor,
        pointed: Tensor,
        keys_0: Tensor,
        values_0: Tensor,
        keys_1: Tensor,
        values_1: Tensor,
        pointers: Tensor,
        bias: Tensor,
        past_keys_0: Tensor,
        past_values_0: Tensor,
        past_keys_1: Tensor,
        past_values_1: Tensor,
    ) -> tuple[Tensor, ...]:
        """Return logits, and the past of the step after this one.

        Shape: symbols (rows, 1), the last token of each row, for a pointer that of the blank; pointed (rows, 1, width),
        the vector of a pointer or zeros; the others as `Encode` returns them, for each row; logits (rows, 1, tokens).
        """
        x = self.norm(nn.functional.embedding(symbols, self.symbols) + self.places[past_keys_0.shape[2]]) + pointed
        x, past_0 = self.below.self_attention.next(x, (past_keys_0, past_values_0))
        x = self.below.look(x, keys_0, values_0)
        x, past_1 = self.above.self_attention.next(x, (past_keys_1, past_values_1))
        x = self.above.look(x, keys_1, values_1)
        return self.classify(x, pointers, bias), *past_0, *past_1


class Parallel(nn.Module):
    """The whole of the non-autoregressive parser: how many tokens, and which."""

    blanks: Tensor

    def __init__(self, model: NonAutoregressiveModel) -> None:
        super().__init__()
        decoder = model.decoder
        self.states = States(model.encoder)
        self.length = model.length
        self.project = Project(decoder)
        self.below, self.above = (Layer(layer) for layer in decoder_layers(decoder))
        self.classify = Classify(decoder)
        x = _blanks(decoder)
        self.register_buffer("blanks", torch.cat([x, self.below.self_attention.project(x)], dim=2).detach())

    def forward(self, ids: Tensor, allowed_lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log-probabilities of 2, 4, 6 and so on tokens, the most probable number, and those of all tokens.

        Shape: ids (batch, n), allowed_lengths (batch, lengths); results (batch, lengths), (batch,) and (batch, m,
        symbols + n - 2), where m is the largest number of tokens in the batch.
        """
        states = self.states(ids)
        keys_0, values_0, keys_1, values_1, pointers, pointer_bias = self.project(states)
        log_p = torch.where(allowed_lengths, self.length(states[:, 0]), _NEVER).log_softmax(1)
        lengths = 2 * log_p.argmax(1) + 2
        used = lengths.to(torch.int32)  # what ONNX Runtime's attention takes
        blanks = self.blanks[:, : self._longest(lengths)].expand(ids.shape[0], -1, -1)
        x, *projected = blanks.chunk(4, dim=2)
        x = self.below.self_attention.together(x, projected, used)
        x = self.below.look(x, keys_0, values_0)
        x = self.above.self_attention.together(x, self.above.self_attention.project(x).chunk(3, dim=2), used)
        x = self.above.look(x, keys_1, values_1)
        logits = self.classify(x, pointers[:, 1:-1].transpose(1, 2), self.classify.biases(pointer_bias))
        return log_p, lengths, logits.log_softmax(2)

    def _longest(self, lengths: Tensor) -> int:
        n = cast(int, lengths.max().item())  # no int(): it would fix the number while tracing
        torch._check(n >= 2)  # type: ignore[no-untyped-call]
        torch._check(n <= self.blanks.shape[1])  # type: ignore[no-untyped-call]
        return n


def decoder_layers(decoder: LinearDecoder) -> list[DecoderLayer]:
    """Return the layers of a decoder, two of them."""
    return [cast(DecoderLayer, layer) for layer in decoder.layers]


def _blanks(decoder: LinearDecoder) -> Tensor:
    """Return what is read where no token is known. Shape: (1, longest, width)."""
    symbols, places = decoder.embedding.tables
    x: Tensor = decoder.embedding.norm(symbols[decoder.n_symbols] + places)
    return x.unsqueeze(0)


def _fold(pointer: Pointer) -> list[tuple[Tensor, Tensor]]:
    """Return matrices and biases that turn a state into what a pointer is scored with: a vector, and a number.

    Shape: matrices (width, width) and (1, width), biases (width,) and (1,).
    """
    scale = pointer.query.in_features**-0.5
    sides = pointer.query.weight.T * scale, pointer.query.bias.unsqueeze(0) * scale
    return [(side @ pointer.key.weight, side @ pointer.key.bias) for side in sides]


@torch.no_grad()
def autoregressive_graphs(model: AutoregressiveModel) -> dict[str, Graph]:
    """Return the graphs of an autoregressive parser by name."""
    decoder, width = model.decoder, model.encoder.width
    n_heads = decoder_layers(decoder)[0].cross_attention.n_heads
    # Sizes in the examples differ and are not 1, so that none is taken for another or for a constant. Each input has a
    # tensor of its own: the exporter takes one tensor for one input, wherever it stands.
    rows, n, t = 2, 7, 5

    def heads(length: int) -> Tensor:
        return torch.zeros(rows, n_heads, length, width // n_heads)

    return {
        ENCODE: Graph(Encode(model), {"ids": _ids(model)}, ("logits", "pointed", *KNOWN, *PAST)),
        STEP: Graph(
            Step(decoder),
            {
                "symbols": (torch.zeros(rows, 1, dtype=torch.int64), {0: "rows"}),
                "pointed": (torch.zeros(rows, 1, width), {0: "rows"}),
                **{name: (heads(n), {0: "rows", 2: "n"}) for name in KNOWN[:-2]},
                "pointers": (torch.zeros(rows, width, n - 2), {0: "rows", 2: "subwords"}),
                "bias": (torch.zeros(rows, 1, decoder.n_symbols + n - 2), {0: "rows", 2: "tokens"}),
                **{name: (heads(t), {0: "rows", 2: "t"}) for name in PAST},
            },
            ("logits", *(f"new_{name}" for name in PAST)),
        ),
    }


@torch.no_grad()
def non_autoregressive_graphs(model: NonAutoregressiveModel) -> dict[str, Graph]:
    """Return the graph of a non-autoregressive parser by name."""
    allowed = torch.ones(2, model.length.out_features, dtype=torch.bool)
    inputs = {"ids": _ids(model), "allowed_lengths": (allowed, {0: "batch"})}
    return {PARSE: Graph(Parallel(model), inputs, ("length_log_p", "length", "log_p"))}


def _ids(model: AutoregressiveModel | NonAutoregressiveModel) -> tuple[Tensor, dict[int, str]]:
    return torch.full((2, 7), model.encoder.pad_id + 1), {0: "batch", 1: "n"}
