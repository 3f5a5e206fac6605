"""The graph of a judge: how probable each token of whole frames is, given those before it.

All frames are of one utterance, so what is computed from its states, in one product, is computed once.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treepiece.export.graphs import Graph
from treepiece.export.linear import Classify, Project, decoder_layers
from treepiece.export.modules import Layer
from treepiece.models.judging import Judge


class Reading(nn.Module):
    """The judge, and how much its opinion counts."""

    own_share: Tensor

    def __init__(self, judge: Judge) -> None:
        super().__init__()
        decoder = judge.decoder
        symbols, places = decoder.embedding.tables
        self.symbols, self.places = nn.Parameter(symbols.detach()), nn.Parameter(places.detach())
        self.norm = decoder.embedding.norm
        self.project = Project(decoder, decoder.pointed)
        self.below, self.above = (Layer(layer) for layer in decoder_layers(decoder))
        self.classify = Classify(decoder)
        self.register_buffer("own_share", torch.tensor(judge.share))

    def forward(self, symbols: Tensor, subwords: Tensor, wanted: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of the wanted tokens, and the judge's share, the same for all frames.

        Shape: (frames, m) each: `symbols`, the tokens before those wanted, for a pointer that of the blank; `subwords`,
        the subword that a pointer points at, counted from 1, and 0 for what is no pointer. States (1, n, width).
        Results (frames, m) and (frames,).
        """
        *parts, pointed, pointers, pointer_bias = self.project(states)
        n_frames, width = symbols.shape[0], states.shape[2]
        keys_0, values_0, keys_1, values_1 = (part.expand(n_frames, -1, -1) for part in parts)
        pointed = nn.functional.pad(pointed[0, 1:-1], (0, 0, 1, 0))  # zeros for what is no pointer
        x = nn.functional.embedding(symbols, self.symbols) + self.places[: symbols.shape[1]]
        x = self.norm(x) + nn.functional.embedding(subwords, pointed)
        x = self.below.look(self.below.self_attention.in_order(x), keys_0, values_0)
        x = self.above.look(self.above.self_attention.in_order(x), keys_1, values_1)
        # One product for all frames: they share what is pointed at.
        flat = self.classify(
            x.reshape(1, -1, width), pointers[:, 1:-1].transpose(1, 2), self.classify.biases(pointer_bias)
        )
        log_p = flat.squeeze(0).log_softmax(1).gather(1, wanted.reshape(-1, 1))
        return log_p.view(wanted.shape), self.own_share.expand(n_frames)


def judge_graph(judge: Judge) -> Graph:
    """Return the graph of a judge."""
    width = judge.decoder.pointed.in_features
    names = ("symbols", "subwords", "wanted")
    inputs = {name: (torch.zeros(2, 9, dtype=torch.int64), {0: "frames", 1: "m"}) for name in names}
    return Graph(Reading(judge), {**inputs, "states": (torch.zeros(1, 7, width), {1: "n"})}, ("log_p", "share"))
