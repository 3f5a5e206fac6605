"""The TreePiece parser: an encoder, a decoder that writes units, and a decoder that points at spans.

utterance -> encoder -> unit decoder (one unit a step) -> skeleton -> span decoder (all leaves at once) -> frame
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import cast

import torch
from torch import Tensor, nn

from treepiece.decoding.grammar import Partial, UnitGrammar
from treepiece.decoding.judging import judge_parses, write_frames
from treepiece.decoding.linear import LinearVocabulary
from treepiece.decoding.parse import Parse, fill_leaves
from treepiece.decoding.ranking import CANDIDATES, FAINTEST, SURE, rerank
from treepiece.decoding.search import Candidate, Logits, search_units
from treepiece.decoding.skeleton import SkeletonTokens, read_skeleton
from treepiece.definition import DecoderConfig
from treepiece.models.composed import ComposedUnits
from treepiece.models.encoder import Encoder
from treepiece.models.hints import LabelHints
from treepiece.models.judging import Judge
from treepiece.models.layers import DecoderLayer, Embedding, Pointer, causal_mask, positions
from treepiece.models.ranking import Ranker
from treepiece.models.skeletons import batch_skeletons
from treepiece.models.utterances import Memory, encode_utterances, pad, to_numpy
from treepiece.text import Subwords
from treepiece.tokenizer.vocabulary import Vocabulary
from treepiece.trees.node import Node


class UnitDecoder(nn.Module):
    """Scores the next unit, given the units so far and the placeholder that it will fill."""

    def __init__(
        self, vocabulary: Vocabulary, width: int, config: DecoderConfig, *, composed: bool, hinted: bool = False
    ) -> None:
        super().__init__()
        n_units = self.start = len(vocabulary)  # the start symbol comes after the units
        self.embedding = Embedding((n_units + 1, len(vocabulary.labels) + 1, config.longest), width, config.dropout)
        self.composed = ComposedUnits(vocabulary, width) if composed else None
        self.layer = DecoderLayer(width, config)
        self.bias = nn.Parameter(torch.zeros(n_units))
        self.hints = LabelHints(vocabulary, width) if hinted else None
        self._kept: tuple[tuple[int, ...], Tensor] | None = None

    def symbols(self) -> Tensor:
        """Return the embeddings of the units and of the start symbol. Shape: (units + 1, width).

        Composing them costs more than all the rest of a step, so where no gradient is asked for they are kept until
        weights are loaded or the model has been trained.
        """
        if self.composed is None:
            return self.embedding.symbols
        if torch.is_grad_enabled() or self.training:
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

    def forward(self, units: Tensor, holes: Tensor, memory: Memory, symbols: Tensor | None = None) -> Tensor:
        """Return the logits of the unit after each place; `symbols` are embeddings that have been composed already.

        Shape: units, the start symbol and then units, and holes, the label of the placeholder that comes next, (batch,
        steps) each; result (batch, steps, units).
        """
        symbols = self.symbols() if symbols is None else symbols
        x = self.embedding(units, holes, positions(units), symbols=symbols)
        x = self.layer(x, causal_mask(x), memory.states, memory.mask.unsqueeze(1))
        # The embeddings of the units are the classifier's weights too.
        logits = nn.functional.linear(x, symbols[: self.start], self.bias)
        return logits if self.hints is None else logits + self.hints(memory.states, memory.mask).unsqueeze(1)


class SpanDecoder(nn.Module):
    """Points at the first and the last subword of each leaf, reading the whole skeleton at once.

    With a ranker it also tells how well a skeleton fits.
    """

    def __init__(self, n_labels: int, width: int, config: DecoderConfig, *, ranked: bool = False) -> None:
        super().__init__()
        self.closing = n_labels
        self.embedding = Embedding((n_labels + 1, config.longest), width, config.dropout)
        self.layer = DecoderLayer(width, config)
        self.start = Pointer(width)
        self.end = Pointer(width)
        self.ranker = Ranker(width) if ranked else None

    def forward(self, tokens: Tensor, token_mask: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Return start and end logits over the encoder's states for every token of a skeleton, leaf or not.

        Shape: tokens and token_mask (batch, n), results (batch, n, m).
        """
        return self.point(self.read(tokens, token_mask, memory), memory)

    def read(self, tokens: Tensor, token_mask: Tensor, memory: Memory) -> Tensor:
        """Return a state for each token of a skeleton. Shape: tokens and token_mask (batch, n)."""
        x = self.embedding(tokens, positions(tokens))
        return cast(Tensor, self.layer(x, token_mask.unsqueeze(1), memory.states, memory.mask.unsqueeze(1)))

    def point(self, states: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Return start and end logits, given the states of tokens."""
        return self.start(states, memory.states, memory.pointable), self.end(states, memory.states, memory.pointable)


@dataclass(frozen=True)
class Reading:
    """Skeletons after the span decoder has read them beside their utterances, one after the other.

    Shape: states (skeletons, n, width); is_node (skeletons, n), True where a node opens. `memory` has the utterance of
    each skeleton, `leaves` the places of its leaves.
    """

    states: Tensor
    is_node: Tensor
    memory: Memory
    leaves: Sequence[list[int]]


class TreePieceModel(nn.Module):
    """Encoder, unit decoder and span decoder; and, if it has one, a judge of whole frames."""

    sure: Tensor

    def __init__(
        self,
        encoder: Encoder,
        grammar: UnitGrammar,
        config: DecoderConfig | None = None,
        *,
        composed: bool = False,
        hinted: bool = False,
        ranked: bool = False,
        judged: bool = False,
    ) -> None:
        super().__init__()
        config = config or DecoderConfig()
        self.grammar = grammar
        self.encoder = encoder
        self.units = UnitDecoder(grammar.vocabulary, encoder.width, config, composed=composed, hinted=hinted)
        self.spans = SpanDecoder(len(grammar.vocabulary.labels), encoder.width, config, ranked=ranked)
        tokens = LinearVocabulary(grammar.vocabulary.labels)
        self.judge = Judge(tokens, encoder.width, config) if judged else None
        self.register_buffer("sure", torch.tensor(SURE))
        self.ranks, self.judges = ranked, judged
        """Whether the ranker and the judge look at beams: what they are worth can be seen by setting these to False."""

    @torch.no_grad()
    def parse(self, utterances: Sequence[Subwords], *, beam: int = 1) -> list[list[Parse]]:
        """Return up to `beam` parses of each utterance, the most probable first.

        A model that ranks or judges has a second look at a beam; where only the best parse is asked for and the search
        is sure of it, that is left out.
        """
        memory = encode_utterances(self.encoder, utterances)
        parses = self.candidates(utterances, memory, beam=beam)
        if self.judges:
            parses = self._judge(parses, memory)
        return [sorted(few, key=lambda parse: -parse.log_p)[:beam] for few in parses]

    def candidates(self, utterances: Sequence[Subwords], memory: Memory, *, beam: int) -> list[list[Parse]]:
        """Return the parses that the best `beam` are to be taken from, before a judge has seen them."""
        beams = self.search_for(memory, beam=beam)
        reading = self.read([[candidate.skeleton for candidate in few] for few in beams], memory)
        if self.ranks:
            assert self.spans.ranker is not None  # what `ranks` says
            scores = iter((self.spans.ranker.weight * self.rank(reading)).tolist())
            beams = [rerank(few, [next(scores) for _ in few]) for few in beams]
        return self.point(utterances, beams, reading)

    def point(
        self, utterances: Sequence[Subwords], beams: Sequence[Sequence[Candidate]], reading: Reading
    ) -> list[list[Parse]]:
        """Return the skeletons of each utterance with their spans, given what the span decoder makes of them."""
        starts, ends = (to_numpy(x.log_softmax(-1)) for x in self.spans.point(reading.states, reading.memory))
        parses: list[list[Parse]] = [[] for _ in utterances]
        pairs = [(item, candidate) for item, few in enumerate(beams) for candidate in few]
        for row, (item, candidate) in enumerate(pairs):
            places = row, reading.leaves[row], slice(1, 1 + len(utterances[item].offsets))
            parses[item].append(fill_leaves(candidate, starts[places], ends[places]))
        return parses

    def _judge(self, parses: Sequence[list[Parse]], memory: Memory) -> list[list[Parse]]:
        """Return the candidates of each utterance with the judge's word taken into account."""
        assert self.judge is not None  # what `judges` says
        scores = self.read_frames(parses, memory)
        return [
            few if found is None else judge_parses(few, found.tolist(), self.judge.share)
            for few, found in zip(parses, scores, strict=True)
        ]

    def read_frames(self, parses: Sequence[Sequence[Parse]], memory: Memory) -> list[Tensor | None]:
        """Return the judge's log q of the candidates of each utterance, all in one pass; None where it has no say."""
        assert self.judge is not None  # asked only where there is one
        frames = [write_frames(few, self.judge.vocabulary, self.judge.longest) for few in parses]
        flat = [(item, tokens) for item, few in enumerate(frames) for tokens in few]
        if not flat:
            return [None] * len(frames)
        items, tokens = zip(*flat, strict=True)
        log_q = torch.split(self.judge(tokens, memory.select(items)), [len(few) for few in frames])
        return [part if len(part) else None for part in log_q]

    def search_for(self, memory: Memory, *, beam: int) -> list[list[Candidate]]:
        """Return the skeletons that the best `beam` are to be taken from; if that is one, others only in doubt."""
        if not (self.ranks or self.judges):
            return self.search(memory, beam=beam)
        if beam > 1:
            return self.search(memory, beam=max(beam, CANDIDATES))
        beams = self.search(memory, beam=1)
        sure = float(self.sure)
        doubtful = [item for item, (best,) in enumerate(beams) if exp(best.log_p) < sure]
        if doubtful:
            found = self.search(memory.select(doubtful), beam=CANDIDATES, faintest=FAINTEST)
            for item, few in zip(doubtful, found, strict=True):
                beams[item] = few
        return beams

    def search(self, memory: Memory, *, beam: int, faintest: float = 0.0) -> list[list[Candidate]]:
        """Return up to `beam` skeletons of each utterance, the most probable first."""
        n = len(memory.states)
        return search_units(n, lambda rows: self.score(rows, memory), self.grammar, beam=beam, faintest=faintest)

    def score(self, rows: Sequence[tuple[int, Partial]], memory: Memory, symbols: Tensor | None = None) -> Logits:
        """Return the logits of the next unit of each tree that is being written; for `symbols` see `UnitDecoder`."""
        device = memory.states.device
        units = pad([(self.units.start, *partial.unit_ids) for _, partial in rows], 0).to(device)
        holes = pad([(*partial.filled, partial.open[-1]) for _, partial in rows], 0).to(device)
        logits = self.units(units, holes, memory.select([item for item, _ in rows]), symbols)
        last = torch.tensor([len(partial.unit_ids) for _, partial in rows], device=device)
        return to_numpy(logits[torch.arange(len(rows), device=device), last])

    def read(self, skeletons: Sequence[Sequence[Node]], memory: Memory) -> Reading:
        """Return what the span decoder makes of the skeletons of each utterance, all in one pass."""
        read = [self.read_skeleton(skeleton) for few in skeletons for skeleton in few]
        batch = batch_skeletons(read, self.spans.closing, memory.states.device)
        chosen = memory.select([item for item, few in enumerate(skeletons) for _ in few])
        states = self.spans.read(batch.tokens, batch.mask, chosen)
        return Reading(states, batch.is_node, chosen, [list(skeleton.leaves) for skeleton in read])

    def read_skeleton(self, skeleton: Node) -> SkeletonTokens:
        """Return a skeleton as the span decoder reads it."""
        return read_skeleton(skeleton, self.grammar.vocabulary.label_ids, self.spans.closing)

    def rank(self, reading: Reading) -> Tensor:
        """Return the ranker's scores of skeletons, not yet weighted. Shape: (skeletons,)."""
        assert self.spans.ranker is not None  # asked only where there is one
        return cast(Tensor, self.spans.ranker(reading.states, reading.is_node))
