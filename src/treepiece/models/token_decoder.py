"""The decoder that reads and generates frames as tokens: labels, span pointers and closing brackets.

Both baselines use it: all tokens in one pass (non-autoregressive), or one token per step with a KV cache
(autoregressive).

The reranker is the same decoder on top of a TreePiece parser. The unit decoder chooses a skeleton and the span decoder
points at words; neither sees the frame as a whole. The reranker does: it learns to generate gold frames token by token,
and then scores the candidates of a beam. Generating takes one pass per token, but scoring a complete frame takes a
single pass:

    log q(frame) = sum over its tokens of log q(token | tokens before it, utterance)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from treepiece.decoding.linearization import TokenVocabulary
from treepiece.definition import DecoderConfig
from treepiece.models.encoder import EncoderOutput
from treepiece.models.layers import PADDING, DecoderLayer, Embedding, Pointer, causal_mask, positions
from treepiece.models.losses import cross_entropy

N_LAYERS = 2
BLANK = PADDING
"""Stands for the start of a sequence in the autoregressive model, and for a masked token in the other."""


class CrossAttentionCache(NamedTuple):
    """What each step attends to: the encoder's output, and its keys and values, which all steps share.

    Shape: states (batch, n, width), mask and pointable (batch, n) as in `EncoderOutput`; keys and values (layers,
    batch, heads, n, width / heads); the keys of the pointer (batch, n, width).
    """

    states: Tensor
    mask: Tensor
    pointable: Tensor
    keys: Tensor
    values: Tensor
    pointer_keys: Tensor

    def select(self, index: Tensor) -> CrossAttentionCache:
        """Return the rows of some utterances, which may repeat."""
        states, mask, pointable, keys, values, pointer_keys = self
        return CrossAttentionCache(
            states[index], mask[index], pointable[index], keys[:, index], values[:, index], pointer_keys[index]
        )


class KVCache(NamedTuple):
    """The KV cache of self-attention over the tokens so far. Shape: (layers, rows, heads, t, width / heads)."""

    keys: Tensor
    values: Tensor

    def select(self, index: Tensor) -> KVCache:
        """Return the past of some rows, which may repeat."""
        return KVCache(self.keys[:, index], self.values[:, index])


class TokenDecoder(nn.Module):
    """Scores tokens; the input vector of a pointer is the state that it points at."""

    def __init__(self, vocabulary: TokenVocabulary, width: int, config: DecoderConfig) -> None:
        super().__init__()
        self.n_symbols = vocabulary.first_pointer  # the labels and the closing bracket
        self.embedding = Embedding((self.n_symbols + 1, config.max_length), width)
        self.pointed = nn.Linear(width, width)
        self.layers = nn.ModuleList(DecoderLayer(width, config) for _ in range(N_LAYERS))
        self.pointer = Pointer(width)
        self.bias = nn.Parameter(torch.zeros(self.n_symbols))

    def forward(self, tokens: Tensor, self_mask: Tensor, encoded: EncoderOutput) -> Tensor:
        """Return the logits of every token at every position.

        Shape: tokens (batch, n), self_mask (1 or batch, 1 or n, n), result (batch, n, labels + 1 + subwords).
        """
        x = self._embed(tokens, positions(tokens), encoded.states)
        for layer in self.layers:
            x = layer(x, self_mask, encoded.states, encoded.mask.unsqueeze(1))
        return self._join(x, self.pointer(x, encoded.states, encoded.pointable))

    def read(self, frames: Tensor, encoded: EncoderOutput) -> Tensor:
        """Return the logits of each token of whole frames, given the tokens before it.

        Shape: frames (batch, n), padded with `BLANK`; result (batch, n, labels + 1 + subwords).
        """
        before = nn.functional.pad(frames[:, :-1], (1, 0), value=BLANK)
        return cast(Tensor, self(before, causal_mask(before), encoded))

    def loss(self, frames: Tensor, encoded: EncoderOutput, smoothing: float) -> Tensor:
        """Return the cross-entropy of each token of whole frames, given the gold tokens before it."""
        return cross_entropy(self.read(frames, encoded), frames, smoothing)

    def cross_attention_cache(self, encoded: EncoderOutput) -> CrossAttentionCache:
        """Return the cross-attention keys and values of a batch of utterances, which all steps share."""
        keys, values = _stack(layer.cross_attention.keys_and_values(encoded.states) for layer in self._each_layer())
        pointer_keys = self.pointer.key(encoded.states)
        return CrossAttentionCache(encoded.states, encoded.mask, encoded.pointable, keys, values, pointer_keys)

    def start(self, cached: CrossAttentionCache) -> KVCache:
        """Return the past of rows without tokens, one row per utterance. Shape: t is 0."""
        return KVCache(cached.keys[:, :, :, :0], cached.values[:, :, :, :0])

    def step(self, tokens: Tensor, past: KVCache, cached: CrossAttentionCache) -> tuple[Tensor, KVCache]:
        """Return the logits of the token after the given ones, and the past of the next step.

        All rows have the same number of tokens. The computation depends on the sizes of tensors, never on their values,
        so that a step can be exported as one graph for any number of rows, subwords and tokens so far.

        Shape: tokens (rows,), the last of each row or `BLANK` at the start; the logits (rows, labels + 1 + subwords).
        """
        places = torch.full_like(tokens, past.keys.shape[3])
        x = self._embed(tokens.unsqueeze(1), places.unsqueeze(1), cached.states)
        grown = []
        for number, layer in enumerate(self._each_layer()):
            before = past.keys[number], past.values[number]
            utterance = cached.keys[number], cached.values[number]
            x, kept = layer.step(x, before, utterance, cached.mask.unsqueeze(1))
            grown.append(kept)
        pointers = self.pointer.score(self.pointer.query(x), cached.pointer_keys, cached.pointable)
        return self._join(x, pointers).squeeze(1), KVCache(*_stack(grown))

    def _each_layer(self) -> Iterable[DecoderLayer]:
        return cast(Iterable[DecoderLayer], self.layers)

    def _embed(self, tokens: Tensor, places: Tensor, states: Tensor) -> Tensor:
        is_pointer = tokens >= self.n_symbols
        symbols = torch.where(is_pointer | (tokens == BLANK), self.n_symbols, tokens)
        x: Tensor = self.embedding(symbols, places)
        subwords = (tokens - self.n_symbols + 1).clamp(min=0)  # the first state is that of a special token
        found = states.gather(1, subwords.unsqueeze(2).expand(-1, -1, states.shape[2]))
        return torch.where(is_pointer.unsqueeze(2), x + self.pointed(found), x)

    def _join(self, x: Tensor, pointers: Tensor) -> Tensor:
        symbols = nn.functional.linear(x, self.embedding.symbols[: self.n_symbols], self.bias)
        return torch.cat([symbols, pointers[:, :, 1:]], dim=2)  # without the first state, too


def _stack(pairs: Iterable[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return the keys of all layers and the values of all layers."""
    keys, values = zip(*pairs, strict=True)
    return torch.stack(keys), torch.stack(values)


class Reranker(nn.Module):
    """Scores whole frames."""

    def __init__(self, vocabulary: TokenVocabulary, width: int, config: DecoderConfig) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.decoder = TokenDecoder(vocabulary, width, config)

    def forward(self, frames: Tensor, encoded: EncoderOutput) -> Tensor:
        """Return log q of frames. Shape: frames (batch, n), padded with `BLANK`; result (batch,)."""
        log_p = self.decoder.read(frames, encoded).log_softmax(-1)
        found = log_p.gather(-1, frames.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        return found.masked_fill(frames == BLANK, 0.0).sum(1)
