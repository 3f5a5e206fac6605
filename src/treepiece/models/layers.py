"""The building blocks of the decoders: attention, a decoder layer, embeddings, pointers."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from treepiece.definition import DecoderConfig
from treepiece.errors import OptionError

PADDING = -1
"""Stands for a missing number: a target without loss, or a token that is masked or not generated yet."""
DROPOUT = 0.1
"""The default dropout of a new decoder; a recipe may set another."""


class Attention(nn.Module):
    """Multi-head attention of queries over keys and values."""

    def __init__(self, width: int, config: DecoderConfig) -> None:
        super().__init__()
        if width % config.n_heads:
            raise OptionError(f"n_heads must divide the encoder's width of {width}, got {config.n_heads}")
        self.n_heads = config.n_heads
        self.dropout = DROPOUT
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, queries: Tensor, encoded: Tensor, mask: Tensor) -> Tensor:
        """Return the attention output for each query.

        Shape: queries (batch, n, width), encoded (batch, m, width), mask broadcasts to (batch, n, m), True for keys
        that a query may see.
        """
        return self.attend(self.queries(queries), *self.keys_and_values(encoded), mask.unsqueeze(1))

    def queries(self, x: Tensor) -> Tensor:
        """Return the queries of some states. Shape: x (batch, n, width), result (batch, heads, n, width / heads)."""
        return self._split(self.query(x))

    def keys_and_values(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of some states. Shape: as for `queries`."""
        return self._split(self.key(encoded)), self._split(self.value(encoded))

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Return the attention output for each query; without a mask every key is visible.

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

    The first part, `attend_to_self`, reads only what has been generated, never the utterance, so its result can be
    cached for a given prefix or skeleton.
    """

    def __init__(self, width: int, config: DecoderConfig) -> None:
        super().__init__()
        self.self_attention = Attention(width, config)
        self.cross_attention = Attention(width, config)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(DROPOUT), nn.Linear(4 * width, width)
        )
        self.self_norm, self.cross_norm, self.forward_norm = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, self_mask: Tensor, encoded: Tensor, encoded_mask: Tensor) -> Tensor:
        """Return the next states.

        Shape: x (batch, n, width), self_mask (1 or batch, 1 or n, n), encoded (batch, m, width),
        encoded_mask (batch, 1, m).
        """
        x = self.attend_to_self(x, self_mask)
        return self._add_utterance(x, self.cross_attention(x, encoded, encoded_mask))

    def attend_to_self(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the states after self-attention."""
        return self._add_self(x, self.self_attention(x, x, mask))

    def step(
        self, x: Tensor, past: tuple[Tensor, Tensor], utterance: tuple[Tensor, Tensor], mask: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the next state of one more token, and the keys and values of self-attention, its own last.

        Shape: x (batch, 1, width); the keys and values of the tokens before it, past (batch, heads, t, width / heads);
        those of the utterance (batch, heads, m, width / heads), with a mask (batch, 1, m).
        """
        own = self.self_attention.keys_and_values(x)
        keys, values = (torch.cat([before, new], dim=2) for before, new in zip(past, own, strict=True))
        # No mask: nothing follows the last token yet.
        x = self._add_self(x, self.self_attention.attend(self.self_attention.queries(x), keys, values, None))
        found = self.cross_attention.attend(self.cross_attention.queries(x), *utterance, mask.unsqueeze(1))
        return self._add_utterance(x, found), (keys, values)

    def _add_self(self, x: Tensor, found: Tensor) -> Tensor:
        return cast(Tensor, self.self_norm(x + self.dropout(found)))

    def _add_utterance(self, x: Tensor, found: Tensor) -> Tensor:
        x = self.cross_norm(x + self.dropout(found))
        return cast(Tensor, self.forward_norm(x + self.dropout(self.feed_forward(x))))


class Embedding(nn.Module):
    """Sums of embeddings (such as those of symbols and positions), normalised, as input to a decoder."""

    def __init__(self, sizes: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.tables = nn.ParameterList(nn.init.normal_(torch.empty(size, width), std=0.02) for size in sizes)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(DROPOUT)

    @property
    def symbols(self) -> Tensor:
        """The first of the tables."""
        return cast(Tensor, self.tables[0])

    def forward(self, *indices: Tensor, symbols: Tensor | None = None) -> Tensor:
        """Return one vector per position; `symbols` replaces the first table.

        Shape: indices (batch, n) each, result (batch, n, width).
        """
        tables = [self.symbols if symbols is None else symbols, *list(self.tables)[1:]]
        vectors = [nn.functional.embedding(index, table) for index, table in zip(indices, tables, strict=True)]
        return cast(Tensor, self.dropout(self.norm(torch.stack(vectors).sum(0))))


class Pointer(nn.Module):
    """Scores the states of an utterance as targets of a pointer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, encoded: Tensor, pointable: Tensor) -> Tensor:
        """Return logits, the lowest possible for states that are not pointable.

        Shape: x (batch, n, width), encoded (batch, m, width), pointable (batch, m), result (batch, n, m).
        """
        return self.score(self.query(x), self.key(encoded), pointable)

    def score(self, queries: Tensor, keys: Tensor, pointable: Tensor) -> Tensor:
        """Return the logits, given the outputs of `query` and `key`. Shape: as for `forward`."""
        scores: Tensor = queries @ keys.transpose(1, 2) * queries.shape[-1] ** -0.5
        return scores.masked_fill(~pointable.unsqueeze(1), torch.finfo(queries.dtype).min)


def set_dropout(model: nn.Module, share: float) -> None:
    """Set the dropout of all modules of a model, those of its encoder too."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = share
        elif isinstance(module, Attention):
            module.dropout = share


def positions(tokens: Tensor) -> Tensor:
    """Return the position of each token. Shape: (batch, n) both."""
    return torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)


def causal_mask(x: Tensor) -> Tensor:
    """Return a mask that lets positions see themselves and those before. Shape: x (batch, n, ...), result (1, n, n)."""
    n = x.shape[1]
    return torch.ones(n, n, dtype=torch.bool, device=x.device).tril().unsqueeze(0)
