"""The two baselines of the paper, which generate a frame as one sequence of tokens.

The autoregressive parser generates token by token. The non-autoregressive parser is mask-predict (Ghazvininejad et
al., 2019): it learns to fill in random masks, and parses in one pass, in which it predicts the length and all tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from treepiece.data.examples import Example
from treepiece.decoding.linearization import TokenGrammar, TokenState, TokenVocabulary, decode_tokens
from treepiece.decoding.mask_predict import decode_frame
from treepiece.decoding.search import Logits
from treepiece.decoding.types import DecodingConfig, Hypothesis
from treepiece.definition import DecoderConfig
from treepiece.errors import OptionError
from treepiece.models.batch import Batch, collate_utterances
from treepiece.models.encoder import Encoder, EncoderOutput, encode, encode_utterances, to_numpy
from treepiece.models.layers import PADDING
from treepiece.models.losses import LossConfig, cross_entropy
from treepiece.models.token_decoder import BLANK, TokenDecoder, collate_frames, select_rows
from treepiece.text import Subwords


class CachedScore:
    """Scores the next tokens of a search by one step of the decoder, with the cached keys and values of earlier steps.

    Each row extends its parent, a row of the previous step, by one token. Only the previous step is cached, because in
    a beam search all rows grow by one token per step.
    """

    def __init__(self, decoder: TokenDecoder, encoded: EncoderOutput) -> None:
        self._decoder = decoder
        self._all = self._chosen = decoder.cross_attention_cache(encoded)
        self._past = decoder.start(self._all)
        self._items = list(range(len(encoded.states)))  # the utterances of the rows of the previous step
        self._places: dict[tuple[int, tuple[int, ...]], int] = {(item, ()): item for item in self._items}

    def __call__(self, rows: Sequence[tuple[int, TokenState]]) -> Logits:
        """Return the logits of the next token of each row; all rows have the same number of tokens."""
        items = [item for item, _ in rows]
        if items != self._items:  # in a greedy search they change only when an utterance is complete
            self._chosen, self._items = self._all.select(items), items
        last = [state.tokens[-1] if state.tokens else BLANK for _, state in rows]
        tokens = torch.tensor(last, device=self._all.encoded.states.device)
        parents = [self._places[item, state.tokens[:-1]] for item, state in rows]
        logits, self._past = self._decoder.step(tokens, select_rows(self._past, parents), self._chosen)
        self._places = {(item, state.tokens): place for place, (item, state) in enumerate(rows)}
        return to_numpy(logits)


class AutoregressiveModel(nn.Module):
    """Encoder and a decoder of two layers."""

    def __init__(self, encoder: Encoder, grammar: TokenGrammar, config: DecoderConfig) -> None:
        super().__init__()
        self.grammar = grammar
        self.encoder = encoder
        self.decoder = TokenDecoder(grammar.vocabulary, encoder.width, config)

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Return examples as a batch; the `collate_fn` of a DataLoader."""
        utterances = collate_utterances([example.subwords for example in examples], self.encoder.pad_id)
        return Batch(utterances, frames=collate_frames(examples, self.grammar.vocabulary))

    def loss(self, batch: Batch, config: LossConfig | None = None) -> dict[str, Tensor]:
        """Return the loss of the next token, given all gold tokens before it."""
        assert batch.frames is not None  # `collate` makes them
        smoothing = (config or LossConfig()).label_smoothing
        return {"loss": self.decoder.loss(batch.frames, encode(self.encoder, batch.utterances), smoothing)}

    @torch.no_grad()
    def parse(
        self, utterances: Sequence[Subwords], config: DecodingConfig | None = None, *, nbest: int = 1
    ) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each utterance, the best first; the settings concern TreePiece only."""
        encoded = encode_utterances(self.encoder, utterances)
        n_subwords = [len(utterance.offsets) for utterance in utterances]
        return decode_tokens(n_subwords, lambda: CachedScore(self.decoder, encoded), self.grammar, nbest=nbest)


def mask_tokens(frames: Tensor, lengths: Tensor) -> Tensor:
    """Return frames with random tokens masked: for each frame a number from 1 to all of them, with equal probability.

    Shape: frames (batch, n), padded with `BLANK`; lengths (batch,).
    """
    n_masked = 1 + (torch.rand(lengths.shape, device=frames.device) * lengths).long()
    order = torch.rand(frames.shape, device=frames.device).masked_fill(frames == BLANK, 2.0)  # padding comes last
    rank = order.argsort(1).argsort(1)
    return frames.masked_fill(rank < n_masked.unsqueeze(1), BLANK)


class NonAutoregressiveModel(nn.Module):
    """Encoder, length predictor and a decoder of two layers."""

    def __init__(self, encoder: Encoder, vocabulary: TokenVocabulary, config: DecoderConfig) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.encoder = encoder
        self.length = nn.Linear(encoder.width, config.max_length // 2)  # every frame has an even number of tokens
        self.decoder = TokenDecoder(vocabulary, encoder.width, config)

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Return examples as a batch; the `collate_fn` of a DataLoader."""
        utterances = collate_utterances([example.subwords for example in examples], self.encoder.pad_id)
        return Batch(utterances, frames=collate_frames(examples, self.vocabulary))

    def loss(self, batch: Batch, config: LossConfig | None = None) -> dict[str, Tensor]:
        """Return the losses by name; `loss` is that of the length plus that of the masked tokens.

        The length is the gold one. In training a random number of tokens is masked, otherwise all are, as in parsing.
        """
        assert batch.frames is not None  # `collate` makes them
        smoothing = (config or LossConfig()).label_smoothing
        encoded = encode(self.encoder, batch.utterances)
        lengths = (batch.frames != BLANK).sum(1)
        # Frames have an even number of tokens: the classes are 2, 4, 6, ...
        length = cross_entropy(self.predict_length(encoded), lengths // 2 - 1, smoothing)
        shown = mask_tokens(batch.frames, lengths) if self.training else torch.full_like(batch.frames, BLANK)
        masked = batch.frames.masked_fill(shown != BLANK, PADDING)
        tokens = cross_entropy(self._fill(shown, lengths, encoded), masked, smoothing)
        return {"loss": length + tokens, "length": length, "tokens": tokens}

    def predict_length(self, encoded: EncoderOutput) -> Tensor:
        """Return the logits of 2, 4, 6, ... tokens. Shape: (batch, lengths)."""
        return cast(Tensor, self.length(encoded.states[:, 0]))

    def decode(self, lengths: Tensor, encoded: EncoderOutput) -> Tensor:
        """Return the logits of all tokens of frames of the given lengths. Shape: lengths (batch,)."""
        blanks = torch.full((len(lengths), int(lengths.max())), BLANK, device=lengths.device)
        return self._fill(blanks, lengths, encoded)

    def _fill(self, tokens: Tensor, lengths: Tensor, encoded: EncoderOutput) -> Tensor:
        """Return the logits of all tokens, of which some are masked. Shape: tokens (batch, n), lengths (batch,)."""
        mask = torch.arange(tokens.shape[1], device=lengths.device) < lengths.unsqueeze(1)
        return cast(Tensor, self.decoder(tokens, mask.unsqueeze(1), encoded))

    @torch.no_grad()
    def parse(
        self, utterances: Sequence[Subwords], config: DecodingConfig | None = None, *, nbest: int = 1
    ) -> list[list[Hypothesis]]:
        """Return the hypothesis for each utterance, a list of one; the settings concern TreePiece only."""
        if nbest != 1:
            raise OptionError(f"a non-autoregressive parser has one candidate for a text: nbest must be 1, got {nbest}")
        encoded = encode_utterances(self.encoder, utterances)
        length_log_p, choice = self.predict_length(encoded).log_softmax(1).max(1)
        lengths = 2 * (choice + 1)
        log_p = to_numpy(self.decode(lengths, encoded).log_softmax(2))
        found = []
        for rows, length, first, utterance in zip(
            log_p, lengths.tolist(), length_log_p.tolist(), utterances, strict=True
        ):
            n_tokens = self.vocabulary.first_pointer + len(utterance.offsets)
            found.append([decode_frame(rows[:length, :n_tokens], first, self.vocabulary)])
        return found
