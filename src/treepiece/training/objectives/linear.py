"""The losses of the two baselines, which both write a frame as one sequence of labels, pointers and brackets."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from treepiece.decoding.linear import LinearVocabulary
from treepiece.models.ar import AutoregressiveModel
from treepiece.models.linear import LinearDecoder
from treepiece.models.nar import NonAutoregressiveModel
from treepiece.models.utterances import Memory, encode_utterances, pad
from treepiece.training.examples import Example
from treepiece.training.losses import IGNORED, cross_entropy
from treepiece.training.objectives.parts import in_parts
from treepiece.training.recipe import Recipe


def token_loss(decoder: LinearDecoder, frames: Sequence[list[int]], memory: Memory, smoothing: float) -> Tensor:
    """Return the loss of each token of whole frames, given the gold tokens before it."""

    def read(rows: Sequence[int], memory: Memory) -> tuple[Tensor, ...]:
        chosen = [frames[row] for row in rows]
        return pad(chosen, IGNORED).to(memory.states.device), decoder.read(chosen, memory)

    wanted, logits = in_parts([len(frame) for frame in frames], memory, read)
    return cross_entropy(logits, wanted, smoothing)


class _LinearObjective(nn.Module):
    """The gold tokens of examples."""

    def __init__(self, examples: Sequence[Example], vocabulary: LinearVocabulary, recipe: Recipe) -> None:
        super().__init__()
        self.recipe = recipe
        self._subwords = [example.subwords for example in examples]
        self._tokens = [vocabulary.write(example.frame.skeleton, example.spans) for example in examples]

    def begin_epoch(self, epoch: int) -> None:
        """Do nothing: a frame has one sequence of tokens, the same in every epoch."""


class AutoregressiveObjective(_LinearObjective):
    """Teaches the next token, given all gold tokens before it."""

    def __init__(self, model: AutoregressiveModel, examples: Sequence[Example], recipe: Recipe) -> None:
        super().__init__(examples, model.grammar.vocabulary, recipe)
        self.model = model

    def forward(self, places: Sequence[int]) -> dict[str, Tensor]:
        """Return the loss of some examples."""
        memory = encode_utterances(self.model.encoder, [self._subwords[place] for place in places])
        tokens = [self._tokens[place] for place in places]
        return {"loss": token_loss(self.model.decoder, tokens, memory, self.recipe.label_smoothing)}


class NonAutoregressiveObjective(_LinearObjective):
    """Teaches the length, and all tokens at once given the gold length.

    loss = length + tokens
    """

    def __init__(self, model: NonAutoregressiveModel, examples: Sequence[Example], recipe: Recipe) -> None:
        super().__init__(examples, model.vocabulary, recipe)
        self.model = model

    def forward(self, places: Sequence[int]) -> dict[str, Tensor]:
        """Return the losses of some examples by name; what is minimised is `loss`."""
        memory = encode_utterances(self.model.encoder, [self._subwords[place] for place in places])
        tokens = [self._tokens[place] for place in places]
        sizes = [len(row) for row in tokens]
        lengths = torch.tensor(sizes, device=memory.states.device)
        length = self._length_loss(lengths, memory)

        def write(rows: Sequence[int], memory: Memory) -> tuple[Tensor, ...]:
            wanted = pad([tokens[row] for row in rows], IGNORED).to(memory.states.device)
            return wanted, self.model.decode(lengths[torch.tensor(rows)], memory)

        wanted, logits = in_parts(sizes, memory, write)
        token = cross_entropy(logits, wanted, self.recipe.label_smoothing)
        return {"loss": length + token, "length": length, "tokens": token}

    def _length_loss(self, lengths: Tensor, memory: Memory) -> Tensor:
        # Frames have an even number of tokens: the classes are 2, 4, 6 and so on.
        return cross_entropy(self.model.predict_length(memory), lengths // 2 - 1, self.recipe.label_smoothing)
