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
from treepiece.models.linear import BLANK, LinearDecoder
from treepiece.models.utterances import Memory, encode_utterances, to_numpy
from treepiece.text import Subwords


class CachedScore:
    """Scores the next tokens of a search with one step of the decoder, which gets the keys and values of earlier steps.

    A row goes on from its parent: the row of the step before that has its tokens but for the last. Only the last step
    is kept, because in a beam search all rows grow by one token a step.
    """

    def __init__(self, decoder: LinearDecoder, memory: Memory) -> None:
        self._decoder = decoder
        self._all = self._chosen = decoder.remember(memory)
        self._past = decoder.start(self._all)
        self._items = list(range(len(memory.states)))  # the utterances of the rows of the last step
        self._places: dict[tuple[int, tuple[int, ...]], int] = {(item, ()): item for item in self._items}

    def __call__(self, rows: Sequence[tuple[int, LinearState]]) -> Logits:
        """Return the logits of the next token of each row; all rows have the same number of tokens."""
        device = self._all.states.device
        items = [item for item, _ in rows]
        if items != self._items:  # a greedy search changes them only when an utterance is done
            self._chosen = self._all.select(torch.tensor(items, device=device))
            self._items = items
        tokens = torch.tensor([state.tokens[-1] if state.tokens else BLANK for _, state in rows], device=device)
        parents = [self._places[item, state.tokens[:-1]] for item, state in rows]
        past = self._past.select(torch.tensor(parents, device=device))
        logits, self._past = self._decoder.step(tokens, past, self._chosen)
        self._places = {(item, state.tokens): place for place, (item, state) in enumerate(rows)}
        return to_numpy(logits)


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
        found = beam_search(starts, CachedScore(self.decoder, memory), self.grammar, beam=beam)
        return [[self._read(state) for state in states] for states in found]

    def _read(self, state: LinearState) -> Parse:
        skeleton, spans = self.grammar.vocabulary.read(state.tokens)
        return Parse(skeleton, tuple(spans), state.log_p, passes=len(state.tokens))
