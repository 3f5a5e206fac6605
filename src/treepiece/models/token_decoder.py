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

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from treepiece.data.examples import Example
from treepiece.decoding.linearization import TokenVocabulary
from treepiece.definition import DecoderConfig
from treepiece.models.batch import pad
from treepiece.models.encoder import EncoderOutput
from treepiece.models.layers import PADDING, DecoderLayer, Embedding, Pointer, causal_mask, positions
from treepiece.models.losses import cross_entropy

N_LAYERS = 2
BLANK = PADDING
"""Stands for the start of a sequence in the autoregressive model, and for a masked token in the other."""


Cache = list[tuple[Tensor, Tensor]]
"""The keys and values of each layer (KV cache). Shape: (rows, heads, t, width / heads) each."""


def select_rows(cache: Cache, rows: list[int]) -> Cache:
    """Return the keys and values of some rows, which may repeat."""
    return [(keys[rows], values[rows]) for keys, values in cache]


class CrossAttentionCache(NamedTuple):
    """What each step attends to: the encoder's output, and its keys and values, which all steps share.

    Shape: the keys of the pointer (batch, n, width).
    """

    encoded: EncoderOutput
    layers: Cache
    pointer_keys: Tensor

    def select(self, items: list[int]) -> CrossAttentionCache:
        """Return the rows of some utterances, which may repeat."""
        layers = select_rows(self.layers, items)
        return CrossAttentionCache(self.encoded.select(items), layers, self.pointer_keys[items])


def collate_frames(examples: Sequence[Example], vocabulary: TokenVocabulary) -> Tensor:
    """Return the frames of examples as tokens, padded with `BLANK`. Shape: (batch, n)."""
    return pad([vocabulary.write(example.frame.skeleton, example.spans) for example in examples], BLANK)


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
        layers = [layer.cross_attention.keys_and_values(encoded.states) for layer in self._each_layer()]
        return CrossAttentionCache(encoded, layers, self.pointer.key(encoded.states))

    def start(self, cached: CrossAttentionCache) -> Cache:
        """Return the past of rows without tokens, one row per utterance. Shape: t is 0."""
        return [(keys[:, :, :0], values[:, :, :0]) for keys, values in cached.layers]

    def step(self, tokens: Tensor, past: Cache, cached: CrossAttentionCache) -> tuple[Tensor, Cache]:
        """Return the logits of the token after the given ones, and the past of the next step.

        All rows have the same number of tokens. The computation depends on the sizes of tensors, never on their values,
        so that a step can be exported as one graph for any number of rows, subwords and tokens so far.

        Shape: tokens (rows,), the last of each row or `BLANK` at the start; the logits (rows, labels + 1 + subwords).
        """
        places = torch.full_like(tokens, past[0][0].shape[2])
        encoded = cached.encoded
        x = self._embed(tokens.unsqueeze(1), places.unsqueeze(1), encoded.states)
        grown = []
        for layer, before, utterance in zip(self._each_layer(), past, cached.layers, strict=True):
            x, kept = layer.step(x, before, utterance, encoded.mask.unsqueeze(1))
            grown.append(kept)
        pointers = self.pointer.score(self.pointer.query(x), cached.pointer_keys, encoded.pointable)
        return self._join(x, pointers).squeeze(1), grown

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
