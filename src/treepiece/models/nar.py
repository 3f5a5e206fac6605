"""The non-autoregressive baseline: predicts the length, then all tokens at once (mask-predict with one pass)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from treepiece.decoding.linear import LinearVocabulary
from treepiece.decoding.parallel import best_frame_tokens
from treepiece.decoding.parse import Parse
from treepiece.decoding.search import Logits
from treepiece.definition import DecoderConfig
from treepiece.errors import OptionError
from treepiece.models.encoder import Encoder
from treepiece.models.linear import BLANK, LinearDecoder
from treepiece.models.utterances import Memory, encode_utterances, to_numpy
from treepiece.text import Subwords


class NonAutoregressiveModel(nn.Module):
    """Encoder, length predictor and a decoder of two layers."""

    def __init__(self, encoder: Encoder, vocabulary: LinearVocabulary, config: DecoderConfig | None = None) -> None:
        super().__init__()
        config = config or DecoderConfig()
        self.vocabulary = vocabulary
        self.encoder = encoder
        self.length = nn.Linear(encoder.width, config.longest // 2)  # every frame has an even number of tokens
        self.decoder = LinearDecoder(vocabulary, encoder.width, config)

    def predict_length(self, memory: Memory) -> Tensor:
        """Return the logits of 2, 4, 6 and so on tokens. Shape: (batch, lengths)."""
        logits: Tensor = self.length(memory.states[:, 0])
        return logits

    def decode(self, lengths: Tensor, memory: Memory) -> Tensor:
        """Return the logits of all tokens of frames of the given lengths. Shape: lengths (batch,)."""
        n = int(lengths.max())
        blanks = torch.full((len(lengths), n), BLANK, device=lengths.device)
        mask = torch.arange(n, device=lengths.device) < lengths.unsqueeze(1)
        logits: Tensor = self.decoder(blanks, mask.unsqueeze(1), memory)
        return logits

    @torch.no_grad()
    def parse(self, utterances: Sequence[Subwords], *, beam: int = 1) -> list[list[Parse]]:
        """Return the parse of each utterance, a list of one."""
        if beam != 1:
            raise OptionError(f"the non-autoregressive model has no beam: it must be 1, got {beam}")
        memory = encode_utterances(self.encoder, utterances)
        length_log_p, choice = self.predict_length(memory).log_softmax(1).max(1)
        lengths = 2 * (choice + 1)
        log_p = to_numpy(self.decode(lengths, memory).log_softmax(2))
        return [
            [self._read(rows[:length, : self.vocabulary.first_pointer + len(utterance.offsets)], float(first))]
            for rows, length, first, utterance in zip(
                log_p, lengths.tolist(), length_log_p.tolist(), utterances, strict=True
            )
        ]

    def _read(self, log_p: Logits, length_log_p: float) -> Parse:
        tokens = best_frame_tokens(log_p, self.vocabulary)
        skeleton, spans = self.vocabulary.read(tokens)
        if len(tokens) < len(log_p):  # an empty slot has no pointers: what was left out has no probability either
            return Parse(skeleton, tuple(spans), float("-inf"), passes=1)
        total = length_log_p + float(log_p[range(len(tokens)), tokens].sum())
        return Parse(skeleton, tuple(spans), total, passes=1)
