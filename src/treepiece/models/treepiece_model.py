"""The TreePiece parser: an encoder, a decoder that generates units, and a decoder that points at spans.

utterance -> encoder -> unit decoder (one unit per step) -> skeleton -> span decoder (all leaves at once) -> frame
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from treepiece.data.examples import Example
from treepiece.decoding.linearization import SkeletonTokens, TokenVocabulary, read_skeleton
from treepiece.decoding.pipeline import DecodingPipeline
from treepiece.decoding.scorer import FirstUnits, SpanScores
from treepiece.decoding.search import Logits, Partial, UnitGrammar, log_softmax
from treepiece.decoding.types import DecodingConfig, Derivation, Hypothesis
from treepiece.definition import DecoderConfig, Extensions
from treepiece.models.batch import Batch, UnitTargets, collate_skeletons, collate_spans, collate_utterances, pad
from treepiece.models.encoder import Encoder, EncoderOutput, encode, encode_utterances, to_numpy
from treepiece.models.layers import PADDING, DecoderLayer, Embedding, Pointer, causal_mask, positions
from treepiece.models.losses import LossConfig, cross_entropy
from treepiece.models.token_decoder import BLANK, Reranker, collate_frames
from treepiece.models.unit_embeddings import CompositionalEmbedding, LabelLogits
from treepiece.text import Subwords
from treepiece.tokenizer.tokenizer import TreePieceTokenizer, UnitIds
from treepiece.tokenizer.vocabulary import Vocabulary
from treepiece.trees.node import Node

_CACHED = 1 << 16


class UnitDecoder(nn.Module):
    """Scores the next unit, given the units so far and, as an extension, the label above the placeholder to fill."""

    def __init__(self, vocabulary: Vocabulary, width: int, config: DecoderConfig, extensions: Extensions) -> None:
        super().__init__()
        n_units = self.start = len(vocabulary)  # the id of the start symbol follows those of the units
        self.reads_placeholders = extensions.placeholder_label
        n_labels = [len(vocabulary.labels) + 1] if self.reads_placeholders else []
        self.embedding = Embedding((n_units + 1, *n_labels, config.max_length), width)
        self.compositional = CompositionalEmbedding(vocabulary, width) if extensions.compositional else None
        self.layer = DecoderLayer(width, config)
        self.bias = nn.Parameter(torch.zeros(n_units))
        self.label_logits = LabelLogits(vocabulary, width) if extensions.label_logits else None

    def symbols(self) -> Tensor:
        """Return the embeddings of the units and of the start symbol. Shape: (units + 1, width)."""
        if self.compositional is None:
            return self.embedding.symbols
        own, start = self.embedding.symbols[: self.start], self.embedding.symbols[self.start :]
        return torch.cat([own + self.compositional(), start])

    @torch.no_grad()
    def start_from(self, units: Tensor) -> None:
        """Set the embeddings of the units to pretrained ones. Shape: (units, width)."""
        self.embedding.symbols[: self.start] = units

    def embed(self, units: Tensor, placeholders: Tensor, symbols: Tensor) -> Tensor:
        """Return the input vectors of the layer. Shape: units and placeholders (batch, steps)."""
        labels = [placeholders] if self.reads_placeholders else []
        return cast(Tensor, self.embedding(units, *labels, positions(units), symbols=symbols))

    def forward(
        self, units: Tensor, placeholders: Tensor, encoded: EncoderOutput, symbols: Tensor | None = None
    ) -> Tensor:
        """Return the logits of the unit after each position; `symbols` saves computing the embeddings again.

        Shape: units, the start symbol and then units, and placeholders, the parent label of the placeholder to fill,
        (batch, steps) each; result (batch, steps, units).
        """
        symbols = self.symbols() if symbols is None else symbols
        x = self.embed(units, placeholders, symbols)
        x = self.layer(x, causal_mask(x), encoded.states, encoded.mask.unsqueeze(1))
        # The embeddings of the units are the classifier's weights too.
        logits = nn.functional.linear(x, symbols[: self.start], self.bias)
        if self.label_logits is None:
            return logits
        by_label: Tensor = self.label_logits(encoded.states, encoded.mask)
        return logits + by_label.unsqueeze(1)


class SpanDecoder(nn.Module):
    """Points at the first and the last subword of each leaf, reading the whole skeleton at once."""

    def __init__(self, n_labels: int, width: int, config: DecoderConfig) -> None:
        super().__init__()
        self.closing = n_labels
        self.embedding = Embedding((n_labels + 1, config.max_length), width)
        self.layer = DecoderLayer(width, config)
        self.start = Pointer(width)
        self.end = Pointer(width)

    def forward(self, tokens: Tensor, token_mask: Tensor, encoded: EncoderOutput) -> tuple[Tensor, Tensor]:
        """Return start and end logits over the encoder's states for every token of a skeleton, leaf or not.

        Shape: tokens and token_mask (batch, n), results (batch, n, m).
        """
        x = self.embedding(tokens, positions(tokens))
        x = self.layer(x, token_mask.unsqueeze(1), encoded.states, encoded.mask.unsqueeze(1))
        return self.start(x, encoded.states, encoded.pointable), self.end(x, encoded.states, encoded.pointable)


class TreePieceModel(nn.Module):
    """Encoder, unit decoder, span decoder, and optionally a reranker."""

    def __init__(
        self,
        encoder: Encoder,
        grammar: UnitGrammar,
        config: DecoderConfig | None = None,
        extensions: Extensions | None = None,
    ) -> None:
        super().__init__()
        config, extensions = config or DecoderConfig(), extensions or Extensions()
        self.grammar = grammar
        self.encoder = encoder
        self.units = UnitDecoder(grammar.vocabulary, encoder.width, config, extensions)
        self.spans = SpanDecoder(len(grammar.vocabulary.labels), encoder.width, config)
        tokens = TokenVocabulary(grammar.vocabulary.labels)
        self.reranker = Reranker(tokens, encoder.width, config) if extensions.reranker else None
        self.tokenizer = TreePieceTokenizer(grammar.vocabulary)
        # A few skeletons make up most of the rows, so what depends on the skeleton alone is computed once.
        self._best_units = lru_cache(_CACHED)(self.tokenizer.encode)
        self._placeholders = lru_cache(_CACHED)(self._filled)
        self.pipeline = DecodingPipeline(grammar, max_length=config.max_length, has_reranker=extensions.reranker)

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Return examples as a batch; the `collate_fn` of a DataLoader."""
        skeletons = [example.frame.skeleton for example in examples]
        units = [example.unit_ids or self._best_units(example.frame.skeleton) for example in examples]
        inputs = [(self.units.start, *unit_ids[:-1]) for unit_ids in units]
        return Batch(
            collate_utterances([example.subwords for example in examples], self.encoder.pad_id),
            UnitTargets(pad(inputs, 0), pad([self._placeholders(row) for row in units], 0), pad(units, PADDING)),
            collate_spans(examples, [self.read_skeleton(one) for one in skeletons], self.spans.closing),
            None if self.reranker is None else collate_frames(examples, self.reranker.vocabulary),
        )

    def loss(self, batch: Batch, config: LossConfig | None = None) -> dict[str, Tensor]:
        """Return the losses by name; both decoders learn from the gold trees, in one pass each.

        loss = units + span weight * (start + end) + reranker weight * reranker
        """
        assert batch.units is not None  # `collate` makes them
        assert batch.spans is not None
        config = config or LossConfig()
        encoded = encode(self.encoder, batch.utterances)
        logits = self.units(batch.units.inputs, batch.units.placeholders, encoded)
        starts, ends = self.spans(batch.spans.tokens, batch.spans.mask, encoded)
        losses = {
            "units": cross_entropy(logits, batch.units.targets, config.label_smoothing),
            "start": cross_entropy(starts, batch.spans.first),
            "end": cross_entropy(ends, batch.spans.last),
        }
        loss = losses["units"] + config.span_loss_weight * (losses["start"] + losses["end"])
        if self.reranker is not None and batch.frames is not None and config.reranker_loss_weight:
            losses["reranker"] = self.reranker.decoder.loss(batch.frames, encoded, config.label_smoothing)
            loss = loss + config.reranker_loss_weight * losses["reranker"]
        return {"loss": loss, **losses}

    def _filled(self, unit_ids: UnitIds) -> tuple[int, ...]:
        """Return the label of the placeholder that each unit fills."""
        partial = self.grammar.start()
        for unit_id in unit_ids:
            partial = self.grammar.extend(partial, unit_id, 0.0)
        return partial.filled

    @torch.no_grad()
    def parse(
        self, utterances: Sequence[Subwords], config: DecodingConfig | None = None, *, nbest: int = 1
    ) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each utterance, the best first."""
        return self.pipeline.decode(self.scorer(utterances), config or DecodingConfig(), nbest=nbest)

    def scorer(self, utterances: Sequence[Subwords]) -> TorchScorer:
        """Return the scorer of these utterances, for decoding."""
        return TorchScorer(self, encode_utterances(self.encoder, utterances))

    def read_skeleton(self, skeleton: Node) -> SkeletonTokens:
        """Return a skeleton as tokens of the span decoder."""
        return read_skeleton(skeleton, self.grammar.vocabulary.label_ids, self.spans.closing)


class TorchScorer:
    """Scores encoded utterances with PyTorch (see `decoding.scorer`)."""

    def __init__(self, model: TreePieceModel, encoded: EncoderOutput) -> None:
        self._model = model
        self._encoded = encoded
        self._symbols = model.units.symbols()  # composed once for all steps, because that costs more than a step

    def first_units(self) -> FirstUnits:
        """Return the scores of the first unit of every utterance."""
        grammar, n = self._model.grammar, len(self._encoded.states)
        start = grammar.start()
        logits = self.next_units([(item, start) for item in range(n)])
        log_p = log_softmax(logits, np.repeat(grammar.allowed(start)[np.newaxis], n, axis=0))
        return FirstUnits(log_p, log_p.argmax(axis=1).tolist())

    def next_units(self, rows: Sequence[tuple[int, Partial]]) -> Logits:
        """Return the logits of the next unit of partial trees. Shape: (rows, units)."""
        device, decoder = self._encoded.states.device, self._model.units
        units = pad([(decoder.start, *partial.unit_ids) for _, partial in rows], 0).to(device)
        placeholders = pad([(*partial.filled, partial.open[-1]) for _, partial in rows], 0).to(device)
        logits = decoder(units, placeholders, self._encoded.select([item for item, _ in rows]), self._symbols)
        last = torch.tensor([len(partial.unit_ids) for _, partial in rows], device=device)
        return to_numpy(logits[torch.arange(len(rows), device=device), last])

    def spans(self, rows: Sequence[tuple[int, Derivation]]) -> list[SpanScores]:
        """Return the scores of the spans of complete skeletons, all in one pass."""
        if not rows:
            return []
        read = [self._model.read_skeleton(derivation.skeleton) for _, derivation in rows]
        items = [item for item, _ in rows]
        tokens, mask = (x.to(self._encoded.states.device) for x in collate_skeletons(read, self._model.spans.closing))
        logits = self._model.spans(tokens, mask, self._encoded.select(items))
        starts, ends = (to_numpy(x.log_softmax(-1)) for x in logits)
        n_subwords = self._encoded.pointable.sum(1).tolist()
        found = []
        for row, (item, skeleton) in enumerate(zip(items, read, strict=True)):
            places = row, list(skeleton.leaves), slice(1, 1 + n_subwords[item])
            found.append(SpanScores(starts[places], ends[places]))
        return found

    def rerank(self, rows: Sequence[tuple[int, Sequence[int]]]) -> list[float]:
        """Return the reranker's log-probabilities of whole frames, all in one pass."""
        assert self._model.reranker is not None  # the pipeline asks only where there is one
        items, frames = zip(*rows, strict=True)
        tokens = pad(frames, BLANK).to(self._encoded.states.device)
        return cast(list[float], self._model.reranker(tokens, self._encoded.select(items)).tolist())
