"""The two baselines on ONNX Runtime.

The autoregressive parser runs the graph `encode` once, which reads the utterance and scores the first token. Every
further token is one run of `step`, which gets the keys and values of the tokens before it. The non-autoregressive
parser is one run of one graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from treepiece.decoding.linearization import TokenState, decode_tokens
from treepiece.decoding.mask_predict import decode_frame
from treepiece.decoding.search import Bools, Logits
from treepiece.decoding.types import DecodingConfig, Hypothesis
from treepiece.definition import Definition
from treepiece.errors import OptionError
from treepiece.runtime.onnx_scorer import chunks
from treepiece.runtime.sessions import ENCODE, PARSE, STEP, Array, Decoded, Graphs, Input, Signature

KNOWN = ("keys_0", "values_0", "keys_1", "values_1", "pointers", "bias")
"""What each step reads of the utterance: keys and values of both layers, and the pointers."""
PAST = ("past_keys_0", "past_values_0", "past_keys_1", "past_values_1")
"""The cached keys and values of earlier tokens (KV cache) of both layers."""


class AutoregressiveRuntime:
    """An autoregressive parser on graphs; the settings concern TreePiece only. Threads may share it."""

    def __init__(self, definition: Definition, graphs: Graphs, config: DecodingConfig) -> None:
        self.grammar = definition.token_grammar()
        self.graphs = graphs

    @staticmethod
    def signatures(definition: Definition, width: int) -> dict[str, Signature]:
        """Return the signatures of the graphs, the first graph of a parse first; `width` is the encoder's."""
        n_heads = definition.decoder.n_heads
        known = Input("float", ("rows", n_heads, "n", width // n_heads))
        past = Input("float", ("rows", n_heads, "t", width // n_heads))
        step = {
            "symbols": Input("int64", ("rows", 1)),
            "pointed": Input("float", ("rows", 1, width)),
            **dict.fromkeys(KNOWN[:-2], known),
            "pointers": Input("float", ("rows", width, "subwords")),
            "bias": Input("float", ("rows", 1, "tokens")),
            **dict.fromkeys(PAST, past),
        }
        return {
            ENCODE: Signature({"ids": Input("int64", ("batch", "n"))}, ("logits", "pointed", *KNOWN, *PAST)),
            STEP: Signature(step, ("logits", *(f"new_{name}" for name in PAST))),
        }

    def parse(self, ids: npt.NDArray[np.int64], *, nbest: int = 1) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each utterance, the best first. Shape: ids (batch, n).

        Each utterance is decoded on its own, so that its result does not depend on others.
        """
        encoded = self.graphs[ENCODE].run(None, {"ids": ids})
        n_subwords = [ids.shape[1] - 2]
        found: list[list[Hypothesis]] = []
        for item in range(len(ids)):
            one = [part[item : item + 1] for part in encoded]
            score = partial(_Score, self.graphs, one, self.grammar.vocabulary.first_pointer)
            found += decode_tokens(n_subwords, score, self.grammar, nbest=nbest)
        return found

    def decode(self, ids: npt.NDArray[np.int64], *, nbest: int = 1) -> list[Decoded]:
        """Return the same without the encoder's states, which the graphs do not return."""
        return [Decoded(hypotheses) for hypotheses in self.parse(ids, nbest=nbest)]


class _Score:
    """Scores the next tokens of a search for one utterance.

    Each row extends a row of the previous step, its parent, by one token.
    """

    def __init__(self, graphs: Graphs, encoded: Sequence[Array], first_pointer: int) -> None:
        self._graphs = graphs
        self._first_pointer = first_pointer
        self._first, pointed, *rest = encoded
        self._pointed = pointed.swapaxes(0, 1)
        self._known = self._repeated = dict(zip(KNOWN, rest[: len(KNOWN)], strict=True))
        self._inputs = dict(zip(PAST, rest[len(KNOWN) :], strict=True))
        self._places: dict[tuple[int, ...], int] = {(): 0}  # of the rows of the previous step

    def __call__(self, rows: Sequence[tuple[int, TokenState]]) -> Logits:
        """Return the logits of the next token of each row; all rows have the same number of tokens."""
        states = [state for _, state in rows]
        logits = self._step(states) if states[0].tokens else self._first
        self._places = {state.tokens: place for place, state in enumerate(states)}
        return logits[:, 0]

    def _step(self, states: Sequence[TokenState]) -> Logits:
        """Return the logits of each row. Shape: (rows, 1, tokens)."""
        tokens = [state.tokens[-1] for state in states]
        parents = [self._places[state.tokens[:-1]] for state in states]
        inputs, first_pointer = self._inputs, self._first_pointer
        if parents != list(range(len(self._places))):  # in a greedy search each row is its own parent
            inputs.update((name, inputs[name][parents]) for name in PAST)
        inputs["symbols"] = np.array([[min(token, first_pointer)] for token in tokens])
        inputs["pointed"] = self._pointed[[max(0, token - first_pointer + 1) for token in tokens]]
        parts = chunks(len(parents), len(self._pointed))
        found = [self._run({name: rows[part] for name, rows in inputs.items()}) for part in parts]
        logits, *past = found[0] if len(found) == 1 else [np.concatenate(few) for few in zip(*found, strict=True)]
        inputs.update(zip(PAST, past, strict=True))
        return logits

    def _run(self, inputs: dict[str, Array]) -> list[Array]:
        """Return the results of the graph `step` for some rows, given the inputs that they do not share."""
        n_rows = len(inputs["symbols"])
        if len(self._repeated[KNOWN[0]]) != n_rows:
            self._repeated = {name: np.repeat(part, n_rows, axis=0) for name, part in self._known.items()}
        # Alone, a step is a little faster with two threads. In a parse they compete with the threads of `encode`, which
        # spin for a while, and the parse takes 1.5 times as long.
        outputs: list[Array] = self._graphs[STEP].run(None, inputs | self._repeated)
        return outputs


class NonAutoregressiveRuntime:
    """A non-autoregressive parser on one graph; the settings concern TreePiece only. Threads may share it."""

    def __init__(self, definition: Definition, graphs: Graphs, config: DecodingConfig) -> None:
        self.vocabulary = definition.token_vocabulary()
        self.graphs = graphs
        self._any_length = np.ones(definition.decoder.max_length // 2, bool)

    @staticmethod
    def signatures(definition: Definition, width: int) -> dict[str, Signature]:
        """Return the signature of the graph; `width` is the encoder's."""
        allowed = Input("bool", ("batch", definition.decoder.max_length // 2))
        inputs = {"ids": Input("int64", ("batch", "n")), "allowed_lengths": allowed}
        return {PARSE: Signature(inputs, ("length_log_p", "length", "log_p"))}

    def parse(
        self, ids: npt.NDArray[np.int64], *, nbest: int = 1, allowed_lengths: Bools | None = None
    ) -> list[list[Hypothesis]]:
        """Return the hypothesis for each utterance, a list of one. Shape: ids (batch, n), allowed_lengths (lengths,).

        `allowed_lengths` says for each length, 2, 4, 6, ... tokens, whether a frame may have it; by default all are
        allowed.
        """
        if nbest != 1:
            raise OptionError(f"a non-autoregressive parser has one candidate for a text: nbest must be 1, got {nbest}")
        allowed = self._any_length if allowed_lengths is None else allowed_lengths
        inputs = {"ids": ids, "allowed_lengths": np.repeat(allowed[np.newaxis], len(ids), axis=0)}
        length_log_p, lengths, log_p = self.graphs[PARSE].run(None, inputs)
        return [
            [decode_frame(rows[:length], float(of_lengths[length // 2 - 1]), self.vocabulary)]
            for rows, length, of_lengths in zip(log_p, lengths.tolist(), length_log_p, strict=True)
        ]

    def decode(self, ids: npt.NDArray[np.int64], *, nbest: int = 1) -> list[Decoded]:
        """Return the same without the encoder's states, which the graphs do not return."""
        return [Decoded(hypotheses) for hypotheses in self.parse(ids, nbest=nbest)]
