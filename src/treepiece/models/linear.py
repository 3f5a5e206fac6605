"""The decoder of both baselines: labels, span pointers and closing brackets, one sequence for the whole frame.

It can write in one pass over all places, as in training, or one token a step, with what earlier steps computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from treepiece.decoding.linear import LinearVocabulary
from treepiece.definition import DecoderConfig
from treepiece.models.layers import DecoderLayer, Embedding, Pointer, causal_mask, positions
from treepiece.models.utterances import Memory, pad

N_LAYERS = 2
BLANK = -1
"""In place of a token: the start of a sequence for the autoregressive model, a masked token for the other."""


class Remembered(NamedTuple):
    """What all steps need to know of a batch of utterances.

    Shape: states (batch, n, width), mask and pointable (batch, n) as in `Memory`; the keys and values of attention over
    the utterance (layers, batch, heads, n, width / heads); the keys of the pointer (batch, n, width).
    """

    states: Tensor
    mask: Tensor
    pointable: Tensor
    keys: Tensor
    values: Tensor
    pointer_keys: Tensor

    def select(self, index: Tensor) -> Remembered:
        """Return what is known of some utterances, which may come more than once."""
        states, mask, pointable, keys, values, pointer_keys = self
        return Remembered(
            states[index], mask[index], pointable[index], keys[:, index], values[:, index], pointer_keys[index]
        )


class Past(NamedTuple):
    """The keys and values of self-attention of the tokens so far. Shape: (layers, rows, heads, t, width / heads)."""

    keys: Tensor
    values: Tensor

    def select(self, index: Tensor) -> Past:
        """Return the past of some rows, which may come more than once."""
        return Past(self.keys[:, index], self.values[:, index])


class LinearDecoder(nn.Module):
    """Scores tokens; a pointer is read as the state that it points at."""

    def __init__(self, vocabulary: LinearVocabulary, width: int, config: DecoderConfig) -> None:
        super().__init__()
        self.n_symbols = vocabulary.first_pointer  # the labels and the closing bracket
        self.embedding = Embedding((self.n_symbols + 1, config.longest), width, config.dropout)
        self.pointed = nn.Linear(width, width)
        self.layers = nn.ModuleList(DecoderLayer(width, config) for _ in range(N_LAYERS))
        self.pointer = Pointer(width)
        self.bias = nn.Parameter(torch.zeros(self.n_symbols))

    def forward(self, tokens: Tensor, self_mask: Tensor, memory: Memory) -> Tensor:
        """Return the logits of every token at every place.

        Shape: tokens (batch, n), self_mask (1 or batch, 1 or n, n), result (batch, n, labels + 1 + subwords).
        """
        x = self._embed(tokens, positions(tokens), memory.states)
        for layer in self.layers:
            x = layer(x, self_mask, memory.states, memory.mask.unsqueeze(1))
        return self._join(x, self.pointer(x, memory.states, memory.pointable))

    def read(self, frames: Sequence[Sequence[int]], memory: Memory) -> Tensor:
        """Return the logits of each token of whole frames, given the tokens before it.

        Shape: memory has an utterance for each frame; result (frames, tokens of the longest, labels + 1 + subwords).
        """
        before = pad([(BLANK, *tokens[:-1]) for tokens in frames], BLANK).to(memory.states.device)
        return cast(Tensor, self(before, causal_mask(before), memory))

    def remember(self, memory: Memory) -> Remembered:
        """Return what `step` needs to know of a batch of utterances: it is the same at every step."""
        keys, values = _stack(layer.cross_attention.keys_and_values(memory.states) for layer in self._each_layer())
        pointer_keys = self.pointer.key(memory.states)
        return Remembered(memory.states, memory.mask, memory.pointable, keys, values, pointer_keys)

    def start(self, remembered: Remembered) -> Past:
        """Return the past of rows without a token, one for each utterance. Shape: t is 0."""
        return Past(remembered.keys[:, :, :, :0], remembered.values[:, :, :, :0])

    def step(self, tokens: Tensor, past: Past, remembered: Remembered) -> tuple[Tensor, Past]:
        """Return the logits of the token after the given ones, and the past of the step after this one.

        All rows have the same number of tokens. Nothing here depends on what is in a tensor, only on sizes, so that a
        step can be exported as one graph for any number of rows, subwords and tokens so far.

        Shape: tokens (rows,), the last of each row or `BLANK` at the start; the logits (rows, labels + 1 + subwords).
        """
        places = torch.full_like(tokens, past.keys.shape[3])
        x = self._embed(tokens.unsqueeze(1), places.unsqueeze(1), remembered.states)
        grown = []
        for number, layer in enumerate(self._each_layer()):
            before = past.keys[number], past.values[number]
            utterance = remembered.keys[number], remembered.values[number]
            x, kept = layer.step(x, before, utterance, remembered.mask.unsqueeze(1))
            grown.append(kept)
        pointers = self.pointer.score(self.pointer.query(x), remembered.pointer_keys, remembered.pointable)
        return self._join(x, pointers).squeeze(1), Past(*_stack(grown))

    def _each_layer(self) -> Iterable[DecoderLayer]:
        return cast(Iterable[DecoderLayer], self.layers)

    def _embed(self, tokens: Tensor, places: Tensor, states: Tensor) -> Tensor:
        is_pointer = tokens >= self.n_symbols
        symbols = torch.where(is_pointer | (tokens == BLANK), self.n_symbols, tokens)
        x: Tensor = self.embedding(symbols, places)
        subwords = (tokens - self.n_symbols + 1).clamp(min=0)  # the first state is no subword's
        found = states.gather(1, subwords.unsqueeze(2).expand(-1, -1, states.shape[2]))
        return torch.where(is_pointer.unsqueeze(2), x + self.pointed(found), x)

    def _join(self, x: Tensor, pointers: Tensor) -> Tensor:
        symbols = nn.functional.linear(x, self.embedding.symbols[: self.n_symbols], self.bias)
        return torch.cat([symbols, pointers[:, :, 1:]], dim=2)  # again without the first state


def _stack(pairs: Iterable[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return the keys of all layers and the values of all layers."""
    keys, values = zip(*pairs, strict=True)
    return torch.stack(keys), torch.stack(values)
