"""What a parser answers before it is a frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treepiece.decoding.search import Candidate
from treepiece.decoding.spans import EMPTY, best_spans
from treepiece.trees.align import Span
from treepiece.trees.node import Node


@dataclass(frozen=True)
class Parse:
    """A skeleton, the spans of its leaves in subwords, and the log-probability of both.

    `passes` is how many times a decoder ran for it. `unit_ids` are the units that a TreePiece parser wrote, empty for
    the others, and `leaf_log_p` is the part of the log-probability that each span has, empty where the spans are no
    part of their own.
    """

    skeleton: Node
    spans: tuple[Span, ...]
    log_p: float
    passes: int
    unit_ids: tuple[int, ...] = ()
    leaf_log_p: tuple[float, ...] = ()


def fill_leaves(candidate: Candidate, starts: npt.NDArray[np.floating], ends: npt.NDArray[np.floating]) -> Parse:
    """Return a skeleton with the best spans of its leaves.

    Shape: starts and ends, log-probabilities of the first and the last subword, (leaves, subwords) each.
    """
    spans, log_p = best_spans(starts, ends)
    leaf_log_p = tuple(
        float(start[span.start] + end[span.end - 1]) if span.start < span.end else EMPTY
        for span, start, end in zip(spans, starts, ends, strict=True)
    )
    passes = len(candidate.unit_ids) + bool(spans)
    return Parse(candidate.skeleton, tuple(spans), candidate.log_p + log_p, passes, candidate.unit_ids, leaf_log_p)
