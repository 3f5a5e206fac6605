"""How much the word of a ranker and of a judge counts, and when it is asked for.

Each weight is one number, fitted where it will be used: on rows that the search is in doubt of, and whose beam has the
right candidate. The ranker's comes first: the judge sees what the ranker has made of a beam. With both known it can be
seen when a second look is worth it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from treepiece.decoding.ranking import SURE
from treepiece.models.treepiece import TreePieceModel
from treepiece.training.doubting import LEVELS, Floats, best_level
from treepiece.training.examples import Example
from treepiece.training.looking import Look, look_again

FITTED = 2000
"""How many rows are enough for a weight, a single number: a tenth of them are in doubt."""
_WEIGHTS = np.linspace(0.0, 4.0, 81)
_TEMPERATURES = np.geomspace(0.5, 8.0, 25)
_NEVER = -1e8

Beam = tuple[Floats, Floats, int]
"""The log-probabilities of a beam's candidates, their scores, and which of them is right."""


def fit_weights(model: TreePieceModel, examples: Sequence[Example]) -> None:
    """Give the ranker and the judge, as far as there are, the weights with which right candidates are most probable.

    And give the model the level from which on it is sure without them.

    The examples have to be others than those that were trained on.
    """
    if not (model.ranks or model.judges):
        return
    was_training = model.training
    model.eval()
    looks = look_again(model, examples, max(LEVELS))
    model.train(was_training)
    doubtful = [look for look in looks if look.p < SURE]
    weight = share = 0.0
    if model.spans.ranker is not None and model.ranks:
        weight = best_weight(_ranked_beams(doubtful))
        model.spans.ranker.weight.fill_(weight)
    if model.judge is not None and model.judges:
        model.judge.weight.fill_(best_weight(_judged_beams(doubtful, weight)))
        share = model.judge.share
    gains = [look.gain(weight, share) for look in looks]
    model.sure.fill_(best_level(np.array([look.p for look in looks]), np.array(gains, np.float64)))


def best_weight(beams: Sequence[Beam]) -> float:
    """Return the w with which the right candidates are most probable, p' being in proportion to p * exp(w * score).

    Two opinions that were formed on the same rows repeat each other, and their product is too sure of itself. Without a
    temperature that would speak against the second opinion, however often it is right. So p' ** (1 / temperature) is
    what has to be probable, with whatever temperature suits a w best; which candidate is first depends on w alone.

    The unit decoder prefers the wrong candidate here, three to one, and the ranker the right one, e to one:

    >>> best_weight([(np.log([0.6, 0.2]), np.array([0.0, 1.0]), 1)])
    4.0
    """
    if not beams:
        return 1.0
    all_log_p, all_scores, all_right = zip(*beams, strict=True)
    log_p, scores, right = _in_columns(all_log_p), _in_columns(all_scores), np.array(all_right)
    return float(max(_WEIGHTS, key=lambda weight: _value(log_p + weight * scores, right)))


def _in_columns(rows: Sequence[Floats]) -> Floats:
    """Return rows of different lengths as one array; what is not there cannot be."""
    table = np.full((len(rows), max(map(len, rows))), _NEVER)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


def _value(mixed: Floats, right: npt.NDArray[np.intp]) -> float:
    """Return the mean log-probability of the right candidates with the temperature that suits them best."""
    mixed = mixed - mixed.max(axis=1, keepdims=True)
    chosen = np.take_along_axis(mixed, right[:, np.newaxis], axis=1)[:, 0]
    return max(float((chosen / t - np.log(np.exp(mixed / t).sum(axis=1))).mean()) for t in _TEMPERATURES)


def _ranked_beams(looks: Sequence[Look]) -> list[Beam]:
    """Return the beams that have the right skeleton among others, and the ranker's scores."""
    return [
        (look.log_p, look.ranks, look.right_skeleton)
        for look in looks
        if len(look.log_p) > 1 and look.right_skeleton is not None
    ]


def _judged_beams(looks: Sequence[Look], weight: float) -> list[Beam]:
    """Return the beams that have the right frame, as the judge gets them from the ranker, and the judge's scores."""
    return [
        (look.opinion(weight), look.log_q, look.right)
        for look in looks
        if look.log_q is not None and look.right is not None
    ]
