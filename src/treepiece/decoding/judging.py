"""What a judge is given to read, and what its word does (see `models.judging`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from treepiece.decoding.linear import LinearVocabulary
from treepiece.decoding.parse import Parse
from treepiece.decoding.ranking import rerank


def write_frames(parses: Sequence[Parse], vocabulary: LinearVocabulary, longest: int) -> list[list[int]]:
    """Return the candidates of a beam as tokens; none where there is nothing to choose, or one is too long to read."""
    frames = [vocabulary.write(parse.skeleton, parse.spans) for parse in parses]
    return frames if len(frames) > 1 and max(map(len, frames)) <= longest else []


def judge_parses(parses: Sequence[Parse], log_q: Sequence[float], share: float) -> list[Parse]:
    """Return the candidates of a beam with probabilities in proportion to p ** (1 - share) * q ** share.

    Reading them has cost one pass more.
    """
    read = [replace(parse, passes=parse.passes + 1) for parse in parses]
    return rerank(read, [share * value for value in log_q], own=1 - share)
