"""The bricks of the decoders: attention, a decoder layer, embeddings, pointers."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from treepiece.definition import DecoderConfig
from treepiece.errors import OptionError


class Attention(nn.Module):
    """Multi-head attention of queries over keys and values."""

    def __init__(self, width: int, config: DecoderConfig) -> None:
        super().__init__()
        if width % config.n_heads:
            raise OptionError(f"n_heads must divide the encoder's width of {width}, got {config.n_heads}")
        self.n_heads = config.n_heads
        self.dropout = config.dropout
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, queries: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """Return what each query finds.

        Shape: queries (batch, n, width), memory (batch, m, width), mask broadcasts to (batch, n, m), True where a query
        may look.
        """
        return self.attend(self.queries(queries), *self.keys_and_values(memory), mask.unsqueeze(1))

    def queries(self, x: Tensor) -> Tensor:
        """Return what some states ask for. Shape: x (batch, n, width), result (batch, heads, n, width / heads)."""
        return self._split(self.query(x))

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return what some states are found by and what is found. Shape: as for `queries`."""
        return self._split(self.key(memory)), self._split(self.value(memory))

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Return what each query finds; without a mask it may look everywhere.

        Shape: queries (batch, heads, n, width / heads), keys and values (batch, heads, m, width / heads), mask
        broadcasts to (batch, heads, n, m), result (batch, n, width).
        """
        dropout = self.dropout if self.training else 0.0
        found = nn.functional.scaled_dot_product_attention(queries, keys, values, mask, dropout)
        return cast(Tensor, self.out(found.transpose(1, 2).flatten(2)))

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)


class DecoderLayer(nn.Module):
    """Self-attention, attention over the encoder's states, feed-forward; normalised after each.

    The first part, `attend_to_self`, sees only what has been written, never the utterance: for a given prefix or
    skeleton it can be computed once and kept.
    """

    def __init__(self, width: int, config: DecoderConfig) -> None:
        super().__init__()
        self.self_attention = Attention(width, config)
        self.cross_attention = Attention(width, config)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(config.dropout), nn.Linear(4 * width, width)
        )
        self.self_norm, self.cross_norm, self.forward_norm = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, self_mask: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """Return the next states.

        Shape: x (batch, n, width), self_mask (1 or batch, 1 or n, n), memory (batch, m, width), memory_mask (batch, 1,
        m).
        """
        return self.attend_to_utterance(self.attend_to_self(x, self_mask), memory, memory_mask)

    def attend_to_self(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the states after self-attention."""
        return self._add_self(x, self.self_attention(x, x, mask))

    def attend_to_utterance(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """Return the states after attention over the utterance and the feed-forward part."""
        return self._add_utterance(x, self.cross_attention(x, memory, mask))

    def step(
        self, x: Tensor, past: tuple[Tensor, Tensor], utterance: tuple[Tensor, Tensor], mask: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the next state of one more token, and the keys and values of self-attention with its own at the end.

        Shape: x (batch, 1, width); the keys and values of the tokens before it, past (batch, heads, t, width / heads);
        those of the utterance (batch, heads, m, width / heads), with a mask (batch, 1, m).
        """
        own = self.self_attention.keys_and_values(x)
        keys, values = (torch.cat([before, new], dim=2) for before, new in zip(past, own, strict=True))
        # No mask: there is nothing yet after the last token.
        x = self._add_self(x, self.self_attention.attend(self.self_attention.queries(x), keys, values, None))
        found = self.cross_attention.attend(self.cross_attention.queries(x), *utterance, mask.unsqueeze(1))
        return self._add_utterance(x, found), (keys, values)

    def _add_self(self, x: Tensor, found: Tensor) -> Tensor:
        return cast(Tensor, self.self_norm(x + self.dropout(found)))

    def _add_utterance(self, x: Tensor, found: Tensor) -> Tensor:
        x = self.cross_norm(x + self.dropout(found))
        return cast(Tensor, self.forward_norm(x + self.dropout(self.feed_forward(x))))


class Embedding(nn.Module):
    """Sums of embeddings (symbols, positions and so on), normalised, as input to a decoder."""

    def __init__(self, sizes: tuple[int, ...], width: int, dropout: float) -> None:
        super().__init__()
        self.tables = nn.ParameterList(nn.init.normal_(torch.empty(size, width), std=0.02) for size in sizes)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    @property
    def symbols(self) -> Tensor:
        """The first of the tables."""
        return cast(Tensor, self.tables[0])

    def forward(self, *indices: Tensor, symbols: Tensor | None = None) -> Tensor:
        """Return one vector for each place; `symbols` stands in for the first table.

        Shape: indices (batch, n) each, result (batch, n, width).
        """
        tables = [self.symbols if symbols is None else symbols, *list(self.tables)[1:]]
        vectors = [nn.functional.embedding(index, table) for index, table in zip(indices, tables, strict=True)]
        return cast(Tensor, self.dropout(self.norm(torch.stack(vectors).sum(0))))


class Pointer(nn.Module):
    """Scores the states of an utterance as places to point at."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, memory: Tensor, pointable: Tensor) -> Tensor:
        """Return logits, the lowest possible where nothing is to point at.

        Shape: x (batch, n, width), memory (batch, m, width), pointable (batch, m), result (batch, n, m).
        """
        return self.score(self.query(x), self.key(memory), pointable)

    def score(self, queries: Tensor, keys: Tensor, pointable: Tensor) -> Tensor:
        """Return the logits, given what `query` and `key` make of the states. Shape: as for `forward`."""
        scores: Tensor = queries @ keys.transpose(1, 2) * queries.shape[-1] ** -0.5
        return scores.masked_fill(~pointable.unsqueeze(1), torch.finfo(queries.dtype).min)


def set_dropout(model: nn.Module, share: float) -> None:
    """Have every module of a model, its encoder's too, drop this share while it is trained."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = share
        elif isinstance(module, Attention):
            module.dropout = share


def positions(tokens: Tensor) -> Tensor:
    """Return the place of each token. Shape: (batch, n) both."""
    return torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)


def causal_mask(x: Tensor) -> Tensor:
    """Return a mask with which a place sees itself and those before it. Shape: x (batch, n, ...), result (1, n, n)."""
    n = x.shape[1]
    return torch.ones(n, n, dtype=torch.bool, device=x.device).tril().unsqueeze(0)
