"""The loss of the TreePiece parser: the next unit, the first and last subword of each leaf, and second looks.

loss = units + span weight * (start + end) + ranking weight * ranking + judge weight * judge
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

import numpy as np
from torch import Tensor, nn

from treepiece.decoding.skeleton import SkeletonTokens
from treepiece.models.skeletons import batch_skeletons
from treepiece.models.treepiece import TreePieceModel
from treepiece.models.utterances import Memory, encode_utterances, pad
from treepiece.tokenizer.tokenizer import TreePieceTokenizer, UnitIds
from treepiece.training.examples import Example
from treepiece.training.losses import IGNORED, cross_entropy
from treepiece.training.objectives.linear import token_loss
from treepiece.training.objectives.parts import in_parts
from treepiece.training.objectives.ranking import RankingLoss
from treepiece.training.recipe import Recipe


class TreePieceObjective(nn.Module):
    """Teaches both decoders from the gold trees, in one pass each."""

    def __init__(
        self, model: TreePieceModel, examples: Sequence[Example], tokenizer: TreePieceTokenizer, recipe: Recipe
    ) -> None:
        super().__init__()
        self.model = model
        self.recipe = recipe
        self._examples = examples
        self._tokenizer = tokenizer
        self._unit_ids = tokenizer.encode_batch([example.frame.skeleton for example in examples])
        self._holes = cache(self._filled)
        self._tokens = cache(model.read_skeleton)
        self._ranking = RankingLoss(model, recipe.ranking)
        self._frames: list[list[int]] = []
        if model.judge is not None and recipe.judge_weight:
            write = model.judge.vocabulary.write
            self._frames = [write(example.frame.skeleton, example.spans) for example in examples]

    def begin_epoch(self, epoch: int) -> None:
        """Where the recipe samples, cut the trees into units anew."""
        if self.recipe.units.sampling:
            skeletons = [example.frame.skeleton for example in self._examples]
            rng = np.random.default_rng([self.recipe.seed, epoch, 1, self.recipe.branch])
            self._unit_ids = self._tokenizer.sample_batch(skeletons, rng, theta=self.recipe.units.sampling)

    def forward(self, places: Sequence[int]) -> dict[str, Tensor]:
        """Return the losses of some examples by name; what is minimised is `loss`."""
        examples = [self._examples[place] for place in places]
        memory = encode_utterances(self.model.encoder, [example.subwords for example in examples])
        targets = [self._unit_ids[place] for place in places]
        wanted = pad(targets, IGNORED).to(memory.states.device)
        symbols = self.model.units.symbols()
        logits = self._unit_logits(targets, memory, symbols)
        units = cross_entropy(logits, wanted, self.recipe.label_smoothing)
        start, end = self._span_losses(examples, memory)
        losses = {"units": units, "start": start, "end": end}
        loss = units + self.recipe.span_weight * (start + end)
        if self.recipe.ranking.weight:
            skeletons = [example.frame.skeleton for example in examples]
            losses["ranking"] = self._ranking(skeletons, logits.detach(), wanted, memory, symbols.detach())
            loss = loss + self.recipe.ranking.weight * losses["ranking"]
        if self._frames:
            losses["judge"] = self._judge_loss([self._frames[place] for place in places], memory)
            loss = loss + self.recipe.judge_weight * losses["judge"]
        return {"loss": loss, **losses}

    def _unit_logits(self, targets: Sequence[UnitIds], memory: Memory, symbols: Tensor) -> Tensor:
        decoder, device = self.model.units, memory.states.device
        inputs = pad([(decoder.start, *unit_ids[:-1]) for unit_ids in targets], 0).to(device)
        holes = pad([self._holes(unit_ids) for unit_ids in targets], 0).to(device)
        return cast(Tensor, decoder(inputs, holes, memory, symbols))

    def _span_losses(self, examples: Sequence[Example], memory: Memory) -> tuple[Tensor, Tensor]:
        read = [self._tokens(example.frame.skeleton) for example in examples]

        def point(rows: Sequence[int], memory: Memory) -> tuple[Tensor, ...]:
            device, chosen = memory.states.device, [read[row] for row in rows]
            skeletons = batch_skeletons(chosen, self.model.spans.closing, device)
            first, last = _pointer_targets([examples[row] for row in rows], chosen)
            targets = pad(first, IGNORED).to(device), pad(last, IGNORED).to(device)  # at the same places
            return *targets, *self.model.spans(skeletons.tokens, skeletons.mask, memory)

        first, last, starts, ends = in_parts([len(skeleton.tokens) for skeleton in read], memory, point)
        return cross_entropy(starts, first), cross_entropy(ends, last)

    def _judge_loss(self, frames: Sequence[list[int]], memory: Memory) -> Tensor:
        assert self.model.judge is not None  # there are frames only where there is one
        return token_loss(self.model.judge.decoder, frames, memory, self.recipe.label_smoothing)

    def _filled(self, unit_ids: UnitIds) -> tuple[int, ...]:
        """Return the label of the placeholder that each unit fills."""
        grammar = self.model.grammar
        partial = grammar.start()
        for unit_id in unit_ids:
            partial = grammar.extend(partial, unit_id, 0.0)
        return partial.filled


def _pointer_targets(
    examples: Sequence[Example], read: Sequence[SkeletonTokens]
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the states of the first and the last subword of each leaf, at the place of the leaf in its skeleton.

    All other places are ignored, and so are slots without words: there is nothing to point at.
    """
    first = [[IGNORED] * len(skeleton.tokens) for skeleton in read]
    last = [[IGNORED] * len(skeleton.tokens) for skeleton in read]
    for row, (example, skeleton) in enumerate(zip(examples, read, strict=True)):
        for place, span in zip(skeleton.leaves, example.spans, strict=True):
            if span.start < span.end:
                # Subword i has state i + 1, and the last subword is the one before the end.
                first[row][place], last[row][place] = span.start + 1, span.end
    return first, last
