"""The interface between decoding and models.

The pipeline knows trees, probabilities and settings; a scorer knows tensors. PyTorch (`models.treepiece_model`) and
ONNX Runtime (`runtime.onnx_scorer`) each implement this protocol, and everything else about a parse is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from treepiece.decoding.search import Logits, Partial
from treepiece.decoding.types import Derivation


class FirstUnits(NamedTuple):
    """The scores of the first unit: log-probabilities over all units, and the most probable unit of each utterance.

    Units that cannot begin a tree have probability 0. Shape: log_p (utterances, units).
    """

    log_p: Logits
    best: Sequence[int]


class SpanScores(NamedTuple):
    """Log-probabilities of the first and the last subword of each leaf. Shape: (leaves, subwords) each."""

    starts: Logits
    ends: Logits


class Scorer(Protocol):
    """Scores one batch of encoded utterances; an utterance is given by its index in the batch."""

    def first_units(self) -> FirstUnits:
        """Return the scores of the first unit of every utterance."""

    def next_units(self, rows: Sequence[tuple[int, Partial]]) -> Logits:
        """Return the logits of the next unit of partial trees. Shape: (rows, units)."""

    def spans(self, rows: Sequence[tuple[int, Derivation]]) -> list[SpanScores]:
        """Return the scores of the spans of complete skeletons."""

    def rerank(self, rows: Sequence[tuple[int, Sequence[int]]]) -> list[float]:
        """Return the reranker's log-probabilities of whole frames, given as tokens (see `TokenVocabulary`)."""
