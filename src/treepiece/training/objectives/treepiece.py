"""The loss of the TreePiece parser: the next unit, and the first and last subword of each leaf.

loss = units + span weight * (start + end)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from torch import Tensor, nn

from treepiece.decoding.skeleton import SkeletonTokens, read_skeleton
from treepiece.models.treepiece import TreePieceModel
from treepiece.models.utterances import Memory, encode_utterances, pad
from treepiece.tokenizer.tokenizer import TreePieceTokenizer, UnitIds
from treepiece.training.examples import Example
from treepiece.training.losses import IGNORED, cross_entropy
from treepiece.training.recipe import Recipe
from treepiece.trees.node import Node


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
        self._tokens = cache(self._skeleton_tokens)

    def begin_epoch(self, epoch: int) -> None:
        """Where the recipe samples, cut the trees into units anew."""
        if self.recipe.units.sampling:
            skeletons = [example.frame.skeleton for example in self._examples]
            rng = np.random.default_rng([self.recipe.seed, epoch, 1])
            self._unit_ids = self._tokenizer.sample_batch(skeletons, rng, theta=self.recipe.units.sampling)

    def forward(self, places: Sequence[int]) -> dict[str, Tensor]:
        """Return the losses of some examples by name; what is minimised is `loss`."""
        examples = [self._examples[place] for place in places]
        memory = encode_utterances(self.model.encoder, [example.subwords for example in examples])
        units = self._unit_loss([self._unit_ids[place] for place in places], memory)
        start, end = self._span_losses(examples, memory)
        return {"loss": units + self.recipe.span_weight * (start + end), "units": units, "start": start, "end": end}

    def _unit_loss(self, targets: Sequence[UnitIds], memory: Memory) -> Tensor:
        decoder, device = self.model.units, memory.states.device
        inputs = pad([(decoder.start, *unit_ids[:-1]) for unit_ids in targets], 0).to(device)
        holes = pad([self._holes(unit_ids) for unit_ids in targets], 0).to(device)
        logits = decoder(inputs, holes, memory)
        return cross_entropy(logits, pad(targets, IGNORED).to(device), self.recipe.label_smoothing)

    def _span_losses(self, examples: Sequence[Example], memory: Memory) -> tuple[Tensor, Tensor]:
        device = memory.states.device
        read = [self._tokens(example.frame.skeleton) for example in examples]
        tokens = pad([skeleton.tokens for skeleton in read], self.model.spans.closing).to(device)
        mask = pad([[1] * len(skeleton.tokens) for skeleton in read], 0).bool().to(device)
        starts, ends = self.model.spans(tokens, mask, memory)
        first, last = _pointer_targets(examples, read)
        return cross_entropy(starts, pad(first, IGNORED).to(device)), cross_entropy(ends, pad(last, IGNORED).to(device))

    def _filled(self, unit_ids: UnitIds) -> tuple[int, ...]:
        """Return the label of the placeholder that each unit fills."""
        grammar = self.model.grammar
        partial = grammar.start()
        for unit_id in unit_ids:
            partial = grammar.extend(partial, unit_id, 0.0)
        return partial.filled

    def _skeleton_tokens(self, skeleton: Node) -> SkeletonTokens:
        return read_skeleton(skeleton, self.model.grammar.vocabulary.label_ids, self.model.spans.closing)


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
