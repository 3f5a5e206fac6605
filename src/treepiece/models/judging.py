"""Another opinion on whole frames.

The unit decoder chooses trees and the span decoder points, and neither ever sees a frame as a whole. A judge does. It
is the decoder of the autoregressive baseline on the same encoder, and learns to write the gold frames token by token.
Writing takes a pass for each token. Reading does not: how probable all tokens of a finished frame are, each given those
before it, takes one pass. So where the search is in doubt, the judge reads the candidates of its beam, all together:

    q(frame)  = product over the tokens of q(token | tokens before it, utterance)
    p'(frame) = (p(frame) * q(frame) ** weight) ** (1 / (1 + weight)), with the beam's total as before

The weight is one number, fitted on rows that were held out. The root makes a mean of the two opinions: they were formed
on the same rows, and their product would be far too sure of itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from treepiece.decoding.linear import LinearVocabulary
from treepiece.definition import DecoderConfig
from treepiece.models.linear import LinearDecoder
from treepiece.models.utterances import Memory, pad

_NOTHING = -1


class Judge(nn.Module):
    """Says how probable whole frames are."""

    weight: Tensor

    def __init__(self, vocabulary: LinearVocabulary, width: int, config: DecoderConfig) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.longest = config.longest
        self.decoder = LinearDecoder(vocabulary, width, config)
        self.register_buffer("weight", torch.ones(()))

    @property
    def share(self) -> float:
        """How much of the mean is the judge's opinion, 0 to 1."""
        weight = float(self.weight)
        return weight / (1 + weight)

    def forward(self, frames: Sequence[Sequence[int]], memory: Memory) -> Tensor:
        """Return log q of frames, given as tokens, each with its utterance. Shape: (frames,)."""
        log_p = self.decoder.read(frames, memory).log_softmax(-1)
        tokens = pad(frames, _NOTHING).to(log_p.device)
        found = log_p.gather(-1, tokens.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        return found.masked_fill(tokens == _NOTHING, 0.0).sum(1)
