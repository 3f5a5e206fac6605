"""The decoder of both baselines: labels, span pointers and closing brackets, one sequence for the whole frame."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treepiece.decoding.linear import LinearVocabulary
from treepiece.definition import DecoderConfig
from treepiece.models.layers import DecoderLayer, Embedding, Pointer, positions
from treepiece.models.utterances import Memory

N_LAYERS = 2
BLANK = -1
"""In place of a token: the start of a sequence for the autoregressive model, a masked token for the other."""


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
        x = self._embed(tokens, memory)
        for layer in self.layers:
            x = layer(x, self_mask, memory.states, memory.mask.unsqueeze(1))
        symbols = nn.functional.linear(x, self.embedding.symbols[: self.n_symbols], self.bias)
        pointers = self.pointer(x, memory.states, memory.pointable)[:, :, 1:]  # the first state is no subword's
        return torch.cat([symbols, pointers], dim=2)

    def _embed(self, tokens: Tensor, memory: Memory) -> Tensor:
        is_pointer = tokens >= self.n_symbols
        symbols = torch.where(is_pointer | (tokens == BLANK), self.n_symbols, tokens)
        x: Tensor = self.embedding(symbols, positions(tokens))
        places = (tokens - self.n_symbols + 1).clamp(min=0)
        states = memory.states.gather(1, places.unsqueeze(2).expand(-1, -1, memory.states.shape[2]))
        return torch.where(is_pointer.unsqueeze(2), x + self.pointed(states), x)
