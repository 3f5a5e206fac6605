"""The graphs of the TreePiece parser.

Most trees are a single unit, and for them one run of the graph `Fused` is the whole parse: encoder, first unit, and the
spans of that unit's leaves. Everything that does not depend on the utterance is computed before:

- the first unit always follows the same start symbol, so its query is a constant;
- the span decoder's self-attention reads only the skeleton, so for every unit that can be a whole tree its result is a
  table with one row per leaf;
- a pointer is a product of two projections, which are merged into one matrix.

The other graphs serve trees of several units, beam search and reranking. `PrefixState` and `SkeletonStates` do not read
the utterance, so the runtime caches their results.
"""

from __future__ import annotations

import copy
from typing import cast

import torch
from torch import Tensor, nn

from treepiece.decoding.linearization import read_skeleton
from treepiece.export.graph_modules import NEVER, AfterSelfAttention, States, TokenGraph, linear
from treepiece.models.layers import Pointer, positions
from treepiece.models.token_decoder import Reranker
from treepiece.models.treepiece_model import SpanDecoder, TreePieceModel, UnitDecoder
from treepiece.runtime.sessions import PARSE, PREFIX, RERANKER, SKELETON, SPANS, UNITS
from treepiece.tokenizer.assembly import Order, assemble


class Fused(nn.Module):
    """Returns the states of utterances, the scores of their first unit, and the spans of its leaves."""

    def __init__(self, model: TreePieceModel) -> None:
        super().__init__()
        self.states = States(model.encoder)
        self.units = AfterSelfAttention(model.units.layer)
        self.classify = Classifier(model.units)
        self.spans = Pointing(model.spans)
        crosses = model.units.layer.cross_attention, model.spans.layer.cross_attention
        self.project = linear(torch.cat([part.weight for cross in crosses for part in (cross.key, cross.value)]))
        self.first, self.n_leaves, self.first_leaf, self.leaves = map(nn.Buffer, _tables(model))

    def forward(self, ids: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return states, log-probabilities of the first unit, the best unit, and log-probabilities of its spans.

        Shape: ids (batch, n), allowed (batch, units); results (batch, n, width), (batch, units), (batch,) and (batch, 2
        * leaves, n - 2), for each leaf the start and the end. `leaves` is the largest number in the batch, and at least
        1.
        """
        states = self.states(ids)
        unit_keys, unit_values, keys, values = self.project(states).chunk(4, dim=2)
        x, query = self.first.expand(ids.shape[0], -1, -1).chunk(2, dim=2)
        logits = self.classify(self.units(x, query, unit_keys, unit_values), states)
        log_p = torch.where(allowed, logits, NEVER).log_softmax(1)
        unit = log_p.argmax(1)
        # index_select instead of []: it becomes one operation instead of three.
        n_leaves = cast(int, self.n_leaves.index_select(0, unit).max().item())  # no int(): tracing would fix the number
        rows = self.first_leaf.index_select(0, unit).unsqueeze(1) + torch.arange(n_leaves)
        x, query = nn.functional.embedding(rows, self.leaves).chunk(2, dim=2)
        return states, log_p, unit, self.spans(x, query, keys, values, states)


class Classifier(nn.Module):
    """Returns the logits of units: from the decoder's state, and from the label logits of the subwords."""

    def __init__(self, decoder: UnitDecoder) -> None:
        super().__init__()
        self.classify = linear(decoder.symbols()[: decoder.start], decoder.bias)
        self.label_logits = decoder.label_logits

    def forward(self, x: Tensor, states: Tensor) -> Tensor:
        """Return logits. Shape: x (batch, 1, width), states (batch, n, width), result (batch, units)."""
        logits = cast(Tensor, self.classify(x).squeeze(1))
        return logits if self.label_logits is None else logits + self.label_logits(states)


class UnitStep(nn.Module):
    """Returns the logits of the next unit, from the state of the prefix and the states of the utterance."""

    def __init__(self, decoder: UnitDecoder) -> None:
        super().__init__()
        cross = decoder.layer.cross_attention
        self.project = linear(torch.cat([cross.key.weight, cross.value.weight]))
        self.layer = AfterSelfAttention(decoder.layer)
        self.classify = Classifier(decoder)

    def forward(self, prefix: Tensor, states: Tensor) -> Tensor:
        """Return logits. Shape: prefix (batch, width), states (batch, n, width), result (batch, units)."""
        keys, values = self.project(states).chunk(2, dim=2)
        x = prefix.unsqueeze(1)
        return cast(Tensor, self.classify(self.layer(x, self.layer.query(x), keys, values), states))


class SpanStep(nn.Module):
    """Returns the spans of leaves, from the states of their skeleton and those of the utterance."""

    def __init__(self, decoder: SpanDecoder) -> None:
        super().__init__()
        cross = decoder.layer.cross_attention
        self.project = linear(torch.cat([cross.key.weight, cross.value.weight]))
        self.spans = Pointing(decoder)

    def forward(self, rows: Tensor, states: Tensor) -> Tensor:
        """Return log-probabilities of starts and ends.

        Shape: rows (batch, m, width), states (batch, n, width), result (batch, 2 * m, n - 2).
        """
        keys, values = self.project(states).chunk(2, dim=2)
        return cast(Tensor, self.spans(rows, self.spans.layer.query(rows), keys, values, states))


class PrefixState(nn.Module):
    """Encodes a prefix of units; it does not read the utterance."""

    def __init__(self, decoder: UnitDecoder) -> None:
        super().__init__()
        self.decoder, self.layer = decoder, decoder.layer
        self.symbols = nn.Parameter(decoder.symbols().detach())

    def forward(self, units: Tensor, placeholders: Tensor) -> Tensor:
        """Return the state after the last unit. Shape: units and placeholders (1, steps), result (1, width)."""
        x = self.decoder.embed(units, placeholders, self.symbols)
        last = x[:, -1:]
        found = self.layer.self_attention(last, x, torch.ones(1, 1, 1, dtype=torch.bool))
        return cast(Tensor, self.layer.self_norm(last + found).squeeze(1))


class SkeletonStates(nn.Module):
    """Encodes a skeleton; it does not read the utterance."""

    def __init__(self, decoder: SpanDecoder) -> None:
        super().__init__()
        self.embedding, self.layer = decoder.embedding, decoder.layer

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the states of all tokens. Shape: tokens (1, n), result (1, n, width)."""
        x = self.embedding(tokens, positions(tokens))
        return self.layer.attend_to_self(x, torch.ones(1, 1, 1, dtype=torch.bool))


class Pointing(nn.Module):
    """The span decoder, starting at its cross-attention."""

    def __init__(self, decoder: SpanDecoder) -> None:
        super().__init__()
        self.layer = AfterSelfAttention(decoder.layer)
        folded = [_fold_query(decoder.start), _fold_query(decoder.end)]
        self.point = linear(torch.cat([weight for weight, _ in folded]), torch.cat([bias for _, bias in folded]))

    def forward(self, x: Tensor, query: Tensor, keys: Tensor, values: Tensor, states: Tensor) -> Tensor:
        """Return log-probabilities over the subwords. Shape: x (batch, m, width), result (batch, 2 * m, n - 2)."""
        x = self.layer(x, query, keys, values)
        pointers = self.point(x).reshape(x.shape[0], -1, x.shape[2])
        scores: Tensor = pointers @ states.transpose(1, 2)
        return scores[:, :, 1:-1].log_softmax(2)


class FrameScores(TokenGraph):
    """The reranker: the probability of each token of complete frames, given the tokens before it.

    All frames are of one utterance, so the product with its states is computed once.
    """

    def __init__(self, reranker: Reranker) -> None:
        super().__init__(reranker.decoder, reranker.decoder.pointed)

    def forward(self, symbols: Tensor, subwords: Tensor, targets: Tensor, states: Tensor) -> Tensor:
        """Return the log-probabilities of the target tokens.

        Shape: (frames, m) each: `symbols`, the tokens before the targets (for a pointer, the blank); `subwords`, the
        subword that a pointer points at, counted from 1, and 0 for other tokens. States (1, n, width).
        """
        *parts, pointed, pointers, biases = self.read(states)
        n_frames, width = symbols.shape[0], states.shape[2]
        keys_0, values_0, keys_1, values_1 = (part.expand(n_frames, -1, -1) for part in parts)
        pointed = nn.functional.pad(pointed[0, 1:-1], (0, 0, 1, 0))  # zeros for tokens that are not pointers
        x = nn.functional.embedding(symbols, self.symbol_table) + self.place_table[: symbols.shape[1]]
        x = self.norm(x) + nn.functional.embedding(subwords, pointed)
        x = self.below.look(self.below.self_attention.in_order(x), keys_0, values_0)
        x = self.above.look(self.above.self_attention.in_order(x), keys_1, values_1)
        flat = self.classify(x.reshape(1, -1, width), pointers, biases)  # one product for all frames
        log_p: Tensor = flat.squeeze(0).log_softmax(1).gather(1, targets.reshape(-1, 1))
        return log_p.view(targets.shape)


def _fold_query(pointer: Pointer) -> tuple[Tensor, Tensor]:
    """Return the matrix and bias that project a query directly into the space of the states.

    (Q x + q) . (K s + k) = (K' Q x + K' q) . s + a term that all states share, which cancels in the softmax.
    """
    scale = pointer.query.in_features**-0.5
    keys = pointer.key.weight.T.double() * scale
    return (keys @ pointer.query.weight.double()).float(), (keys @ pointer.query.bias.double()).float()


def _tables(model: TreePieceModel) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the states and queries that do not depend on the utterance, each state next to its query.

    The first is the state of the start symbol, (1, 1, 2 * width). The last has a row for each leaf of each unit that
    can be a whole tree, (leaves, 2 * width); the others are the number of leaves of each unit, and the row of its first
    leaf, (units,) each.

    All is computed in double precision and then rounded: sums in single precision depend on the number of threads, and
    a model exported twice would have different graphs.
    """
    units, spans = copy.deepcopy(model.units).double(), copy.deepcopy(model.spans).double()
    grammar, states = model.grammar, SkeletonStates(spans)
    start, root = torch.tensor([[units.start]]), torch.tensor([[grammar.root]])
    first = PrefixState(units)(start, root).unsqueeze(0)
    allowed = grammar.allowed(grammar.start())
    counts, rows = [], []
    for unit, placeholders in enumerate(grammar.placeholders):
        counts.append(0)
        if allowed[unit] and not placeholders:
            tree = assemble([unit], grammar.vocabulary, Order.PRE)
            tokens, places = read_skeleton(tree, grammar.vocabulary.label_ids, spans.closing)
            counts[unit] = len(places)
            rows.append(states(torch.tensor([tokens]))[0, list(places)])
    n_leaves = torch.tensor(counts)
    # In a batch with larger units, rows after a unit's own are read too, so some must follow the last.
    rows.append(torch.zeros(max(1, *counts), model.encoder.width, dtype=torch.float64))
    leaves = torch.cat(rows)
    unit_query, span_query = (decoder.layer.cross_attention.query for decoder in (units, spans))
    return (
        torch.cat([first, unit_query(first)], dim=2).float(),
        n_leaves.clamp(min=1),  # a graph must not have empty tensors
        n_leaves.cumsum(0) - n_leaves,
        torch.cat([leaves, span_query(leaves)], dim=1).float(),
    )


def treepiece_modules(model: TreePieceModel) -> dict[str, nn.Module]:
    """Return the modules of a TreePiece parser by the names of their graphs."""
    modules = {
        PARSE: Fused(model),
        UNITS: UnitStep(model.units),
        SPANS: SpanStep(model.spans),
        PREFIX: PrefixState(model.units),
        SKELETON: SkeletonStates(model.spans),
    }
    return modules if model.reranker is None else {**modules, RERANKER: FrameScores(model.reranker)}
