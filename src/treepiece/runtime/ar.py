"""The autoregressive baseline on ONNX Runtime.

One run of the graph `encode` reads the utterance and scores the first token, which always follows the same start
symbol. Every further token is one run of `step`, which gets the keys and values of the tokens before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from treepiece.decoding.linear import LinearState
from treepiece.decoding.parse import Parse
from treepiece.decoding.search import Logits, beam_search
from treepiece.definition import Definition
from treepiece.runtime.chunks import chunks
from treepiece.runtime.graphs import ENCODE, STEP, Array, Graphs

KNOWN = ("keys_0", "values_0", "keys_1", "values_1", "pointers", "bias")
"""What every step needs to know of an utterance: what the two layers attend to, and how pointers are scored."""
PAST = ("past_keys_0", "past_values_0", "past_keys_1", "past_values_1")
"""What every step needs to know of the tokens before it: what the two layers attend to."""


class AutoregressiveRuntime:
    """Scores from graphs, search from `decoding`. Threads may share it."""

    def __init__(self, definition: Definition, graphs: Graphs) -> None:
        self.grammar = definition.linear_grammar()
        self.graphs = graphs

    def parse(self, ids: npt.NDArray[np.int64], *, beam: int = 1) -> list[list[Parse]]:
        """Return up to `beam` parses of each utterance, the most probable first. Shape: ids (batch, n).

        Each utterance is searched on its own, so that an answer does not depend on those beside it.
        """
        encoded = self.graphs.run(ENCODE, {"ids": ids})
        n_subwords = ids.shape[1] - 2
        return [self._search([part[item : item + 1] for part in encoded], n_subwords, beam) for item in range(len(ids))]

    def _search(self, encoded: Sequence[Array], n_subwords: int, beam: int) -> list[Parse]:
        """Return the parses of one utterance."""
        score = _Score(self.graphs, encoded, self.grammar.vocabulary.first_pointer)
        (found,) = beam_search([LinearState(n_subwords)], score, self.grammar, beam=beam)
        return [self._read(state, score.log_p) for state in found]

    def _read(self, state: LinearState, log_p: Mapping[tuple[int, ...], float]) -> Parse:
        """Return what finished tokens say, given the log-probabilities of their beginnings."""
        tokens, first_pointer = state.tokens, self.grammar.vocabulary.first_pointer
        skeleton, spans = self.grammar.vocabulary.read(tokens)
        starts = [place for place, token in enumerate(tokens) if token >= first_pointer][0::2]
        pairs = iter([log_p[tokens[: start + 2]] - log_p[tokens[:start]] for start in starts])
        # An empty slot has no pointers, so there is nothing of its own to be sure or unsure of.
        leaf_log_p = tuple(next(pairs) if span.start < span.end else 0.0 for span in spans)
        return Parse(skeleton, tuple(spans), state.log_p, passes=len(tokens), leaf_log_p=leaf_log_p)


class _Score:
    """Scores the next tokens of a search for one utterance, and keeps the log-probability of whatever it goes on from.

    A row goes on from its parent: the row of the step before that has its tokens but for the last.
    """

    def __init__(self, graphs: Graphs, encoded: Sequence[Array], first_pointer: int) -> None:
        self._graphs = graphs
        self._first_pointer = first_pointer
        self._first, pointed, *rest = encoded
        self._pointed = pointed.swapaxes(0, 1)
        self._known = self._repeated = dict(zip(KNOWN, rest[: len(KNOWN)], strict=True))
        self._inputs = dict(zip(PAST, rest[len(KNOWN) :], strict=True))
        self._places: dict[tuple[int, ...], int] = {(): 0}  # of the rows of the last step
        self.log_p: dict[tuple[int, ...], float] = {}

    def __call__(self, rows: Sequence[tuple[int, LinearState]]) -> Logits:
        """Return the logits of the next token of each row; all rows have the same number of tokens."""
        states = [state for _, state in rows]
        logits = self._step(states) if states[0].tokens else self._first
        self._places = {state.tokens: place for place, state in enumerate(states)}
        self.log_p.update((state.tokens, state.log_p) for state in states)
        return logits[:, 0]

    def _step(self, states: Sequence[LinearState]) -> Logits:
        """Return the logits of each row. Shape: (rows, 1, tokens)."""
        tokens = [state.tokens[-1] for state in states]
        parents = [self._places[state.tokens[:-1]] for state in states]
        inputs, first_pointer = self._inputs, self._first_pointer
        if parents != list(range(len(self._places))):  # in a greedy search a row is its own parent
            inputs.update((name, inputs[name][parents]) for name in PAST)
        inputs["symbols"] = np.array([[min(token, first_pointer)] for token in tokens])
        inputs["pointed"] = self._pointed[[max(0, token - first_pointer + 1) for token in tokens]]
        parts = chunks(len(parents), len(self._pointed))
        found = [self._run({name: rows[part] for name, rows in inputs.items()}) for part in parts]
        logits, *past = found[0] if len(found) == 1 else [np.concatenate(few) for few in zip(*found, strict=True)]
        inputs.update(zip(PAST, past, strict=True))
        return logits

    def _run(self, inputs: dict[str, Array]) -> list[Array]:
        """Return what the graph `step` says of some rows, given what they do not share."""
        n_rows = len(inputs["symbols"])
        if len(self._repeated[KNOWN[0]]) != n_rows:
            self._repeated = {name: np.repeat(part, n_rows, axis=0) for name, part in self._known.items()}
        # On its own a step is a little faster with two threads. In a parse they compete with those of `encode`, which
        # go on waiting for work for a while, and the parse takes half as long again.
        return self._graphs.run(STEP, inputs | self._repeated)
