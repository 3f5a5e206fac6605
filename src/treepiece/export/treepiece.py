"""The graphs of the TreePiece parser.

Most trees are a single unit, and for them one run of the graph `Fused` is the whole parse: encoder, first unit, and the
spans of that unit's leaves. What does not depend on the utterance has been computed before:

- the first unit always comes after the same start symbol, so its query is a constant;
- the span decoder's self-attention reads the skeleton alone, so for every unit that can be a whole tree its result is a
  row of a table for each leaf;
- a pointer is a product of two projections, which are one matrix.

The other graphs go on with trees of several units, and with beams. `PrefixState` and `SkeletonStates` do not see the
utterance: their results are kept.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from treepiece.decoding.skeleton import read_skeleton
from treepiece.export.graphs import Graph
from treepiece.export.judging import judge_graph
from treepiece.export.modules import AfterSelfAttention, States, linear
from treepiece.models.layers import Pointer, positions
from treepiece.models.ranking import Ranker
from treepiece.models.treepiece import SpanDecoder, TreePieceModel, UnitDecoder
from treepiece.runtime.graphs import JUDGE, PARSE, PREFIX, SKELETON, SPANS, UNITS
from treepiece.tokenizer.assembly import Order, assemble

_NEVER = -1e30


class Fused(nn.Module):
    """The states of utterances, the scores of their first unit, and the spans of those that it completes."""

    first: Tensor
    n_leaves: Tensor
    first_leaf: Tensor
    leaves: Tensor

    def __init__(self, model: TreePieceModel) -> None:
        super().__init__()
        self.states = States(model.encoder)
        self.units = AfterSelfAttention(model.units.layer)
        self.classify = Classifier(model.units)
        self.spans = Pointing(model.spans)
        crosses = model.units.layer.cross_attention, model.spans.layer.cross_attention
        self.project = linear(torch.cat([part.weight for cross in crosses for part in (cross.key, cross.value)]))
        for name, table in _tables(model, self.units, self.spans).items():
            self.register_buffer(name, table)

    def forward(self, ids: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return states, log-probabilities of the first unit, the best unit, and log-probabilities of its spans.

        Shape: ids (batch, n), allowed (batch, units); results (batch, n, width), (batch, units), (batch,) and (batch, 2
        * leaves, n - 2), for each leaf the start and the end. There are as many leaves as the utterance with most of
        them has, and one at least.
        """
        states = self.states(ids)
        unit_keys, unit_values, keys, values = self.project(states).chunk(4, dim=2)
        x, query = self.first.expand(ids.shape[0], -1, -1).chunk(2, dim=2)
        logits = self.classify(self.units(x, query, unit_keys, unit_values), states)
        log_p = torch.where(allowed, logits, _NEVER).log_softmax(1)
        unit = log_p.argmax(1)
        # Rows of tables are taken so, and not with [], because that becomes one operation where the other is three.
        places = torch.arange(self._most_leaves(unit))
        rows = self.first_leaf.index_select(0, unit).unsqueeze(1) + places
        x, query = nn.functional.embedding(rows, self.leaves).chunk(2, dim=2)
        return states, log_p, unit, self.spans(x, query, keys, values, states)

    def _most_leaves(self, unit: Tensor) -> int:
        n = cast(
            int, self.n_leaves.index_select(0, unit).max().item()
        )  # no int(): it would fix the number while tracing
        torch._check(n >= 1)  # type: ignore[no-untyped-call]
        return n


class Classifier(nn.Module):
    """The logits of units, from what the decoder has made of the utterance and from what its words hint at."""

    def __init__(self, decoder: UnitDecoder) -> None:
        super().__init__()
        self.classify = linear(decoder.symbols()[: decoder.start], decoder.bias)
        self.hints = decoder.hints

    def forward(self, x: Tensor, states: Tensor) -> Tensor:
        """Return logits. Shape: x (batch, 1, width), states (batch, n, width), result (batch, units)."""
        logits = cast(Tensor, self.classify(x).squeeze(1))
        return logits if self.hints is None else logits + self.hints(states)


class UnitStep(nn.Module):
    """The logits of the next unit, from the state of the prefix and the states of the utterance."""

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
    """The spans of leaves, from the states of rows of their skeleton and those of the utterance."""

    def __init__(self, decoder: SpanDecoder) -> None:
        super().__init__()
        cross = decoder.layer.cross_attention
        self.project = linear(torch.cat([cross.key.weight, cross.value.weight]))
        self.spans = Pointing(decoder)

    def read(self, rows: Tensor, states: Tensor) -> Tensor:
        """Return the rows after the span decoder has read them beside the utterance."""
        keys, values = self.project(states).chunk(2, dim=2)
        return cast(Tensor, self.spans.layer(rows, self.spans.layer.query(rows), keys, values))

    def forward(self, rows: Tensor, states: Tensor) -> Tensor:
        """Return log-probabilities of starts and ends.

        Shape: rows (batch, m, width), states (batch, n, width), result (batch, 2 * m, n - 2).
        """
        return self.spans.point_from(self.read(rows, states), states)


class RankedSpanStep(SpanStep):
    """The same for a decoder with a ranker: the rows are all nodes of a skeleton, and each has a score."""

    def __init__(self, decoder: SpanDecoder, ranker: Ranker) -> None:
        super().__init__(decoder)
        first, last = cast(nn.Linear, ranker.score[0]), cast(nn.Linear, ranker.score[2])
        weighted = linear(last.weight * ranker.weight, last.bias * ranker.weight)
        self.score = nn.Sequential(first, nn.GELU(), weighted)

    def forward(self, rows: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Return what `SpanStep` does, and the weighted scores of the nodes. Shape: scores (batch, m)."""
        x = self.read(rows, states)
        return self.spans.point_from(x, states), self.score(x).squeeze(2)


class PrefixState(nn.Module):
    """What the unit decoder makes of the units so far, before it looks at the utterance."""

    def __init__(self, decoder: UnitDecoder) -> None:
        super().__init__()
        self.embedding, self.layer = decoder.embedding, decoder.layer
        self.symbols = nn.Parameter(decoder.symbols().detach())

    def forward(self, units: Tensor, holes: Tensor) -> Tensor:
        """Return the state after the last unit. Shape: units and holes (1, steps), result (1, width)."""
        x = self.embedding(units, holes, positions(units), symbols=self.symbols)
        last = x[:, -1:]
        found = self.layer.self_attention(last, x, torch.ones(1, 1, 1, dtype=torch.bool))
        return cast(Tensor, self.layer.self_norm(last + found).squeeze(1))


class SkeletonStates(nn.Module):
    """What the span decoder makes of a skeleton, before it looks at the utterance."""

    def __init__(self, decoder: SpanDecoder) -> None:
        super().__init__()
        self.embedding, self.layer = decoder.embedding, decoder.layer

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the states of all tokens. Shape: tokens (1, n), result (1, n, width)."""
        x = self.embedding(tokens, positions(tokens))
        return self.layer.attend_to_self(x, torch.ones(1, 1, 1, dtype=torch.bool))


class Pointing(nn.Module):
    """The span decoder from its cross-attention on."""

    def __init__(self, decoder: SpanDecoder) -> None:
        super().__init__()
        self.layer = AfterSelfAttention(decoder.layer)
        folded = [_fold(decoder.start), _fold(decoder.end)]
        self.point = linear(torch.cat([weight for weight, _ in folded]), torch.cat([bias for _, bias in folded]))

    def forward(self, x: Tensor, query: Tensor, keys: Tensor, values: Tensor, states: Tensor) -> Tensor:
        """Return log-probabilities over the subwords. Shape: x (batch, m, width), result (batch, 2 * m, n - 2)."""
        return self.point_from(self.layer(x, query, keys, values), states)

    def point_from(self, x: Tensor, states: Tensor) -> Tensor:
        """Return the same, given the states after the layer."""
        pointers = self.point(x).reshape(x.shape[0], -1, x.shape[2])
        scores: Tensor = pointers @ states.transpose(1, 2)
        return scores[:, :, 1:-1].log_softmax(2)


def _fold(pointer: Pointer) -> tuple[Tensor, Tensor]:
    """Return the matrix and bias that turn a query straight into what is multiplied with the states.

    (Q x + q) . (K s + k) = (K' Q x + K' q) . s + a term that all states have and that a softmax does not see.
    """
    scale = pointer.query.in_features**-0.5
    keys = pointer.key.weight.T * scale
    return keys @ pointer.query.weight, keys @ pointer.query.bias


@torch.no_grad()
def _tables(model: TreePieceModel, units: AfterSelfAttention, spans: Pointing) -> dict[str, Tensor]:
    """Return what can be known before there is an utterance, each state beside its query.

    `first` is the state of the start symbol, (1, 1, 2 * width). `leaves` has a row for each leaf of each unit that can
    be a whole tree, (leaves, 2 * width); `first_leaf` and `n_leaves` tell where those of a unit are, (units,) each.
    """
    grammar, states = model.grammar, SkeletonStates(model.spans)
    start, root = torch.tensor([[model.units.start]]), torch.tensor([[grammar.root]])
    first = PrefixState(model.units)(start, root).unsqueeze(0)
    allowed = grammar.allowed(grammar.start())
    counts, rows = [], []
    for unit, holes in enumerate(grammar.holes):
        counts.append(0)
        if allowed[unit] and not holes:
            tree = assemble([unit], grammar.vocabulary, Order.PRE)
            tokens, leaves = read_skeleton(tree, grammar.vocabulary.label_ids, model.spans.closing)
            counts[unit] = len(leaves)
            rows.append(states(torch.tensor([tokens]))[0, list(leaves)])
    n_leaves = torch.tensor(counts)
    # Rows past a unit's own are read where it shares a batch with larger ones: there must be some after the last.
    rows.append(torch.zeros(max(1, *counts), model.encoder.width))
    leaves_ = torch.cat(rows)
    return {
        "first": torch.cat([first, units.query(first)], dim=2),
        "n_leaves": n_leaves.clamp(min=1),  # graphs do not like empty tensors
        "first_leaf": n_leaves.cumsum(0) - n_leaves,
        "leaves": torch.cat([leaves_, spans.layer.query(leaves_)], dim=1),
    }


def treepiece_graphs(model: TreePieceModel) -> dict[str, Graph]:
    """Return the graphs of a TreePiece parser by name."""
    width, ranker = model.encoder.width, model.spans.ranker
    # Sizes in the examples differ and are not 1, so that none is taken for another or for a constant.
    states = torch.zeros(2, 7, width), {0: "batch", 1: "n"}
    ids = torch.full((2, 7), model.encoder.pad_id + 1)
    allowed = torch.ones(2, model.units.start, dtype=torch.bool)
    judging = {} if model.judge is None else {JUDGE: judge_graph(model.judge)}
    return {
        PARSE: Graph(
            Fused(model),
            {"ids": (ids, {0: "batch", 1: "n"}), "allowed": (allowed, {0: "batch"})},
            ("states", "log_p", "unit", "spans"),
        ),
        UNITS: Graph(
            UnitStep(model.units), {"prefix": (torch.zeros(2, width), {0: "batch"}), "states": states}, ("logits",)
        ),
        SPANS: Graph(
            SpanStep(model.spans) if ranker is None else RankedSpanStep(model.spans, ranker),
            {"rows": (torch.zeros(2, 3, width), {0: "batch", 1: "rows"}), "states": states},
            ("spans",) if ranker is None else ("spans", "scores"),
        ),
        PREFIX: Graph(
            PrefixState(model.units),
            {name: (torch.zeros(1, 3, dtype=torch.int64), {1: "steps"}) for name in ("units", "holes")},
            ("prefix",),
        ),
        SKELETON: Graph(
            SkeletonStates(model.spans), {"tokens": (torch.zeros(1, 5, dtype=torch.int64), {1: "tokens"})}, ("states",)
        ),
        **judging,
    }
