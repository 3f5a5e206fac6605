"""The non-autoregressive baseline on ONNX Runtime: one run of one graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treepiece.decoding.grammar import Bools
from treepiece.decoding.parallel import best_frame_tokens
from treepiece.decoding.parse import Parse
from treepiece.decoding.search import Logits
from treepiece.definition import Definition
from treepiece.errors import OptionError
from treepiece.runtime.graphs import PARSE, Graphs


class NonAutoregressiveRuntime:
    """Scores from a graph, the best frame from `decoding`. Threads may share it."""

    def __init__(self, definition: Definition, graphs: Graphs) -> None:
        self.vocabulary = definition.linear_vocabulary()
        self.graphs = graphs
        self._any_length = np.ones(definition.decoder.longest // 2, bool)

    def parse(
        self, ids: npt.NDArray[np.int64], *, beam: int = 1, allowed_lengths: Bools | None = None
    ) -> list[list[Parse]]:
        """Return the parse of each utterance, a list of one. Shape: ids (batch, n), allowed_lengths (lengths,).

        `allowed_lengths` says for 2, 4, 6 and so on tokens whether a frame may have so many; by default all may be.
        """
        if beam != 1:
            raise OptionError(f"the non-autoregressive model has no beam: it must be 1, got {beam}")
        allowed = self._any_length if allowed_lengths is None else allowed_lengths
        inputs = {"ids": ids, "allowed_lengths": np.repeat(allowed[np.newaxis], len(ids), axis=0)}
        length_log_p, lengths, log_p = self.graphs.run(PARSE, inputs)
        return [
            [self._read(rows[:length], float(of_lengths[length // 2 - 1]))]
            for rows, length, of_lengths in zip(log_p, lengths.tolist(), length_log_p, strict=True)
        ]

    def _read(self, log_p: Logits, length_log_p: float) -> Parse:
        """Return the best frame. Shape: log_p (length, labels + 1 + subwords)."""
        tokens = best_frame_tokens(log_p, self.vocabulary)
        skeleton, spans = self.vocabulary.read(tokens)
        if len(tokens) < len(log_p):  # an empty slot has no pointers: what was left out has no probability either
            return Parse(skeleton, tuple(spans), -np.inf, passes=1, leaf_log_p=(-np.inf,) * len(spans))
        chosen = log_p[range(len(tokens)), tokens].astype(np.float64)
        pointers = chosen[np.array(tokens) >= self.vocabulary.first_pointer]
        pairs = iter((pointers[0::2] + pointers[1::2]).tolist())
        # An empty slot that fits the length has no pointers: there is nothing of its own to be sure or unsure of.
        leaf_log_p = tuple(next(pairs) if span.start < span.end else 0.0 for span in spans)
        return Parse(skeleton, tuple(spans), length_log_p + float(chosen.sum()), passes=1, leaf_log_p=leaf_log_p)
