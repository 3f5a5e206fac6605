"""The TreePiece parser: an encoder, a decoder that writes units, and a decoder that points at spans.

utterance -> encoder -> unit decoder (one unit a step) -> skeleton -> span decoder (all leaves at once) -> frame
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from treepiece.decoding.grammar import Partial, UnitGrammar
from treepiece.decoding.parse import Parse, fill_leaves
from treepiece.decoding.search import Candidate, Logits, search_units
from treepiece.decoding.skeleton import read_skeleton
from treepiece.definition import DecoderConfig
from treepiece.models.composed import ComposedUnits
from treepiece.models.encoder import Encoder
from treepiece.models.layers import DecoderLayer, Embedding, Pointer, causal_mask, positions
from treepiece.models.utterances import Memory, encode_utterances, pad, to_numpy
from treepiece.text import Subwords
from treepiece.tokenizer.vocabulary import Vocabulary


class UnitDecoder(nn.Module):
    """Scores the next unit, given the units so far and the placeholder that it will fill."""

    def __init__(self, vocabulary: Vocabulary, width: int, config: DecoderConfig, *, composed: bool) -> None:
        super().__init__()
        n_units = self.start = len(vocabulary)  # the start symbol comes after the units
        self.embedding = Embedding((n_units + 1, len(vocabulary.labels) + 1, config.longest), width, config.dropout)
        self.composed = ComposedUnits(vocabulary, width) if composed else None
        self.layer = DecoderLayer(width, config)
        self.bias = nn.Parameter(torch.zeros(n_units))
        self._kept: tuple[tuple[int, ...], Tensor] | None = None

    def symbols(self) -> Tensor:
        """Return the embeddings of the units and of the start symbol. Shape: (units + 1, width).

        Composing them costs more than all the rest of a step, so where no gradient is asked for they are kept until
        weights are loaded or the model has been trained.
        """
        if self.composed is None:
            return self.embedding.symbols
        if torch.is_grad_enabled():
            return self._compose(self.composed)
        weights = self.embedding.symbols, self.composed.table
        state = tuple(number for weight in weights for number in (weight._version, weight.data_ptr()))
        if self._kept is None or self._kept[0] != state:
            self._kept = state, self._compose(self.composed)
        return self._kept[1]

    def train(self, mode: bool = True) -> UnitDecoder:
        """Change the mode; in between, an optimizer may have changed weights without a trace."""
        self._kept = None
        return super().train(mode)

    def _compose(self, composed: ComposedUnits) -> Tensor:
        own, start = self.embedding.symbols[: self.start], self.embedding.symbols[self.start :]
        return torch.cat([own + composed(), start])

    @torch.no_grad()
    def start_from(self, units: Tensor) -> None:
        """Take pretrained embeddings of the units over. Shape: (units, width)."""
        self.embedding.symbols[: self.start] = units

    def forward(self, units: Tensor, holes: Tensor, memory: Memory) -> Tensor:
        """Return the logits of the unit after each place.

        Shape: units, the start symbol and then units, and holes, the label of the placeholder that comes next, (batch,
        steps) each; result (batch, steps, units).
        """
        symbols = self.symbols()
        x = self.embedding(units, holes, positions(units), symbols=symbols)
        x = self.layer(x, causal_mask(x), memory.states, memory.mask.unsqueeze(1))
        # The embeddings of the units are the classifier's weights too.
        return nn.functional.linear(x, symbols[: self.start], self.bias)


class SpanDecoder(nn.Module):
    """Points at the first and the last subword of each leaf, reading the whole skeleton at once."""

    def __init__(self, n_labels: int, width: int, config: DecoderConfig) -> None:
        super().__init__()
        self.closing = n_labels
        self.embedding = Embedding((n_labels + 1, config.longest), width, config.dropout)
        self.layer = DecoderLayer(width, config)
        self.start = Pointer(width)
        self.end = Pointer(width)

    def forward(self, tokens: Tensor, token_mask: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Return start and end logits over the encoder's states for every token of a skeleton, leaf or not.

        Shape: tokens and token_mask (batch, n), results (batch, n, m).
        """
        x = self.embedding(tokens, positions(tokens))
        x = self.layer(x, token_mask.unsqueeze(1), memory.states, memory.mask.unsqueeze(1))
        return self.start(x, memory.states, memory.pointable), self.end(x, memory.states, memory.pointable)


class TreePieceModel(nn.Module):
    """Encoder, unit decoder and span decoder."""

    def __init__(
        self, encoder: Encoder, grammar: UnitGrammar, config: DecoderConfig | None = None, *, composed: bool = False
    ) -> None:
        super().__init__()
        config = config or DecoderConfig()
        self.grammar = grammar
        self.encoder = encoder
        self.units = UnitDecoder(grammar.vocabulary, encoder.width, config, composed=composed)
        self.spans = SpanDecoder(len(grammar.vocabulary.labels), encoder.width, config)

    @torch.no_grad()
    def parse(self, utterances: Sequence[Subwords], *, beam: int = 1) -> list[list[Parse]]:
        """Return up to `beam` parses of each utterance, the most probable first."""
        memory = encode_utterances(self.encoder, utterances)
        found = search_units(len(utterances), lambda rows: self._score(rows, memory), self.grammar, beam=beam)
        pairs = [(item, candidate) for item, candidates in enumerate(found) for candidate in candidates]
        parses: list[list[Parse]] = [[] for _ in utterances]
        for (item, _), parse in zip(pairs, self._fill(pairs, utterances, memory), strict=True):
            parses[item].append(parse)
        return [sorted(few, key=lambda parse: -parse.log_p) for few in parses]

    def _score(self, rows: Sequence[tuple[int, Partial]], memory: Memory) -> Logits:
        """Return the logits of the next unit of each tree that is being written."""
        device = memory.states.device
        units = pad([(self.units.start, *partial.unit_ids) for _, partial in rows], 0).to(device)
        holes = pad([(*partial.filled, partial.open[-1]) for _, partial in rows], 0).to(device)
        logits = self.units(units, holes, memory.select([item for item, _ in rows]))
        last = torch.tensor([len(partial.unit_ids) for _, partial in rows], device=device)
        return to_numpy(logits[torch.arange(len(rows), device=device), last])

    def _fill(
        self, pairs: Sequence[tuple[int, Candidate]], utterances: Sequence[Subwords], memory: Memory
    ) -> list[Parse]:
        """Return the skeletons with their spans, all in one pass."""
        label_ids = self.grammar.vocabulary.label_ids
        read = [read_skeleton(candidate.skeleton, label_ids, self.spans.closing) for _, candidate in pairs]
        device = memory.states.device
        tokens = pad([skeleton.tokens for skeleton in read], self.spans.closing).to(device)
        mask = pad([[1] * len(skeleton.tokens) for skeleton in read], 0).bool().to(device)
        chosen = memory.select([item for item, _ in pairs])
        starts, ends = (to_numpy(x.log_softmax(-1)) for x in self.spans(tokens, mask, chosen))
        parses = []
        for row, (item, candidate) in enumerate(pairs):
            leaves = list(read[row].leaves)
            subwords = slice(1, 1 + len(utterances[item].offsets))
            parses.append(fill_leaves(candidate, starts[row, leaves, subwords], ends[row, leaves, subwords]))
        return parses
