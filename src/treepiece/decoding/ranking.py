"""A second look at the candidates of a beam, where it is worth it.

A greedy search that is sure of its tree is nearly always right. Where it is not, a beam has other trees to offer, and
a ranker (see `models.ranking`) or a judge (see `models.judging`) scores them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from treepiece.decoding.parse import Parse
from treepiece.decoding.search import Candidate

T = TypeVar("T", Candidate, Parse)

CANDIDATES = 8
"""How many candidates there are at least for a second look: on rows held out from training, 8 were better than 5."""
FAINTEST = 0.02
"""A candidate that is less than this times as probable as the best is not looked at: hardly one of them is right, and
what a look takes grows with every candidate. Rows held out from training have as many right answers without them."""
SURE = 0.6
"""A tree that a greedy search finds this probable needs no second look, where a model has no level of its own that was
fitted (see `training.doubting`)."""


def rerank(candidates: Sequence[T], scores: Sequence[float], *, own: float = 1.0) -> list[T]:
    """Return the candidates of a beam with probabilities p' in proportion to p ** own * exp(score), in the order given.

    The beam as a whole is as probable as before: probability moves between its candidates only.

    >>> from treepiece.trees.node import Node
    >>> beam = [Candidate(Node("A"), (0,), np.log(0.5)), Candidate(Node("B"), (1,), np.log(0.3))]
    >>> [round(float(np.exp(candidate.log_p)), 2) for candidate in rerank(beam, [0.0, np.log(5)])]
    [0.2, 0.6]
    """
    before = np.array([candidate.log_p for candidate in candidates])
    finite = np.nan_to_num(np.asarray(scores, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    after = own * before + finite
    total = np.logaddexp.reduce(before) - np.logaddexp.reduce(after)
    return [
        replace(candidate, log_p=min(0.0, float(log_p)))
        for candidate, log_p in zip(candidates, after + total, strict=True)
    ]
