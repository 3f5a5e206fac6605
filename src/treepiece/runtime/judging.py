"""A judge of whole frames on ONNX Runtime (see `models.judging`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from treepiece.decoding.judging import judge_parses, write_frames
from treepiece.decoding.linear import LinearVocabulary
from treepiece.decoding.parse import Parse
from treepiece.runtime.chunks import chunks
from treepiece.runtime.graphs import JUDGE, Graphs

_START = -1


class JudgeRuntime:
    """Reads the candidates of a beam. Threads may share it."""

    def __init__(self, labels: Sequence[str], longest: int, graphs: Graphs) -> None:
        self._vocabulary = LinearVocabulary(labels)
        self._longest = longest
        self._graphs = graphs

    def judge(self, parses: Sequence[Parse], states: npt.NDArray[np.float32]) -> list[Parse]:
        """Return the candidates of one utterance with the judge's word taken into account. Shape: states (n, width)."""
        frames = write_frames(parses, self._vocabulary, self._longest)
        log_q: list[float] = []
        share = 0.0
        for part in chunks(len(frames), len(states)):
            found, share = self._read(frames[part], states)
            log_q += found
        return judge_parses(parses, log_q, share) if log_q else list(parses)

    def _read(self, frames: Sequence[list[int]], states: npt.NDArray[np.float32]) -> tuple[list[float], float]:
        """Return the log-probabilities of frames, in one run, and how much the judge's opinion counts."""
        wanted = np.zeros((len(frames), max(map(len, frames))), np.int64)
        before = np.full_like(wanted, _START)
        for row, tokens in enumerate(frames):
            wanted[row, : len(tokens)] = tokens
            before[row, 1 : len(tokens)] = tokens[:-1]
        first = self._vocabulary.first_pointer
        inputs = {
            # The start, and what is not there, are read as a blank, which comes after all symbols; so are pointers.
            "symbols": np.where((before == _START) | (before >= first), first, before),
            "subwords": np.maximum(before - first + 1, 0),
            "wanted": wanted,
            "states": states[np.newaxis],
        }
        log_p, share = self._graphs.run(JUDGE, inputs)
        log_q = [float(row[: len(tokens)].sum()) for row, tokens in zip(log_p, frames, strict=True)]
        return log_q, float(share[0])
