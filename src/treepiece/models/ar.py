"""The autoregressive baseline: writes a frame token by token."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from treepiece.decoding.linear import LinearGrammar, LinearState
from treepiece.decoding.parse import Parse
from treepiece.decoding.search import Logits, beam_search
from treepiece.definition import DecoderConfig
from treepiece.models.encoder import Encoder
from treepiece.models.layers import causal_mask
from treepiece.models.linear import BLANK, LinearDecoder
from treepiece.models.utterances import Memory, encode_utterances, pad, to_numpy
from treepiece.text import Subwords


class AutoregressiveModel(nn.Module):
    """Encoder and a decoder of two layers."""

    def __init__(self, encoder: Encoder, grammar: LinearGrammar, config: DecoderConfig | None = None) -> None:
        super().__init__()
        self.grammar = grammar
        self.encoder = encoder
        self.decoder = LinearDecoder(grammar.vocabulary, encoder.width, config or DecoderConfig())

    @torch.no_grad()
    def parse(self, utterances: Sequence[Subwords], *, beam: int = 1) -> list[list[Parse]]:
        """Return up to `beam` parses of each utterance, the most probable first."""
        memory = encode_utterances(self.encoder, utterances)
        starts = [LinearState(len(utterance.offsets)) for utterance in utterances]
        found = beam_search(starts, lambda rows: self._score(rows, memory), self.grammar, beam=beam)
        return [[self._read(state) for state in states] for states in found]

    def _score(self, rows: Sequence[tuple[int, LinearState]], memory: Memory) -> Logits:
        tokens = pad([(BLANK, *state.tokens) for _, state in rows], BLANK).to(memory.states.device)
        logits = self.decoder(tokens, causal_mask(tokens), memory.select([item for item, _ in rows]))
        last = torch.tensor([len(state.tokens) for _, state in rows], device=tokens.device)
        return to_numpy(logits[torch.arange(len(rows), device=tokens.device), last])

    def _read(self, state: LinearState) -> Parse:
        skeleton, spans = self.grammar.vocabulary.read(state.tokens)
        return Parse(skeleton, tuple(spans), state.log_p, passes=len(state.tokens))
