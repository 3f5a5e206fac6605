"""The graphs of the two baselines.

The autoregressive parser has two. `Encode` reads the utterance and runs the first step: the start symbol is always the
same, so the first layer's self-attention output for it is a constant. `Step` generates each further token.

The non-autoregressive one is a single graph, `Parallel`. All of its input tokens are blank, so the first layer's
queries, keys and values are constants too: a table with one row per position.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from treepiece.export.graph_modules import NEVER, States, TokenGraph, heads_apart
from treepiece.models.baselines import AutoregressiveModel, NonAutoregressiveModel
from treepiece.models.token_decoder import TokenDecoder


class Encode(TokenGraph):
    """Encodes utterances for the decoder steps, and runs the first step."""

    def __init__(self, model: AutoregressiveModel) -> None:
        super().__init__(model.decoder, model.decoder.pointed)
        self.states = States(model.encoder)
        x, past = self.below.self_attention.first(self.blanks()[:, :1])
        self.first = nn.Buffer(x)
        self.first_query = nn.Buffer(self.below.rest.query(x))
        self.first_past = nn.Buffer(torch.stack(past))

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """Return the logits of the first token, the vectors of pointers, and `KNOWN` and `PAST`.

        Shape: ids (batch, n); logits (batch, 1, tokens); the input vectors of pointers (batch, n - 1, width), the first
        of them zeros, for tokens that are not pointers; keys and values (batch, heads, n, width / heads), those of the
        past with one position; pointers and biases as `read` returns them.
        """
        *parts, pointed, pointers, biases = self.read(self.states(ids))
        keys_0, values_0, keys_1, values_1 = (heads_apart(part, self.below.rest.n_heads) for part in parts)
        pointed = nn.functional.pad(pointed[:, 1:-1], (0, 0, 1, 0))
        x, query = (part.expand(ids.shape[0], -1, -1) for part in (self.first, self.first_query))
        x = self.below.rest(x, query, keys_0, values_0)
        x, past = self.above.self_attention.first(x)
        x = self.above.look(x, keys_1, values_1)
        logits = self.classify(x, pointers, biases)
        first_past = (part.expand(ids.shape[0], -1, -1, -1) for part in self.first_past)
        return logits, pointed, keys_0, values_0, keys_1, values_1, pointers, biases, *first_past, *past


class Step(TokenGraph):
    """Generates the logits of one more token for each row."""

    def __init__(self, decoder: TokenDecoder) -> None:
        super().__init__(decoder)

    def forward(
        self,
        symbols: Tensor,
        pointed: Tensor,
        keys_0: Tensor,
        values_0: Tensor,
        keys_1: Tensor,
        values_1: Tensor,
        pointers: Tensor,
        bias: Tensor,
        past_keys_0: Tensor,
        past_values_0: Tensor,
        past_keys_1: Tensor,
        past_values_1: Tensor,
    ) -> tuple[Tensor, ...]:
        """Return logits, and the past of the next step.

        Shape: symbols (rows, 1), the last token of each row (for a pointer, the blank); pointed (rows, 1, width),
        the vector of a pointer or zeros; the others as `Encode` returns them, one per row; logits (rows, 1, tokens).
        """
        x = nn.functional.embedding(symbols, self.symbol_table) + self.place_table[past_keys_0.shape[2]]
        x = self.norm(x) + pointed
        x, past_0 = self.below.self_attention.next(x, (past_keys_0, past_values_0))
        x = self.below.look(x, keys_0, values_0)
        x, past_1 = self.above.self_attention.next(x, (past_keys_1, past_values_1))
        x = self.above.look(x, keys_1, values_1)
        return self.classify(x, pointers, bias), *past_0, *past_1


class Parallel(TokenGraph):
    """The complete non-autoregressive parser: the number of tokens, and the tokens."""

    def __init__(self, model: NonAutoregressiveModel) -> None:
        super().__init__(model.decoder)
        self.states = States(model.encoder)
        self.length = model.length
        x = self.blanks()
        self.table = nn.Buffer(torch.cat([x, self.below.self_attention.project(x)], dim=2))

    def forward(self, ids: Tensor, allowed_lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log-probabilities of lengths (2, 4, 6, ...), the most probable length, and those of all tokens.

        Shape: ids (batch, n), allowed_lengths (batch, lengths); results (batch, lengths), (batch,) and (batch, m,
        symbols + n - 2), where m is the largest number of tokens in the batch.
        """
        states = self.states(ids)
        keys_0, values_0, keys_1, values_1, pointers, biases = self.read(states)
        log_p = torch.where(allowed_lengths, self.length(states[:, 0]), NEVER).log_softmax(1)
        lengths = 2 * log_p.argmax(1) + 2
        used = lengths.to(torch.int32)  # the type that ONNX Runtime's attention expects
        n = cast(int, lengths.max().item())  # no int(): it would fix the number while tracing
        x, *projected = self.table[:, :n].expand(ids.shape[0], -1, -1).chunk(4, dim=2)
        x = self.below.self_attention.together(x, projected, used)
        x = self.below.look(x, keys_0, values_0)
        x = self.above.self_attention.together(x, self.above.self_attention.project(x).chunk(3, dim=2), used)
        x = self.above.look(x, keys_1, values_1)
        return log_p, lengths, self.classify(x, pointers, biases).log_softmax(2)
