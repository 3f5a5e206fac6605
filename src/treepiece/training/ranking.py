"""How much the ranker's word counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from treepiece.decoding.ranking import CANDIDATES
from treepiece.models.treepiece import TreePieceModel
from treepiece.models.utterances import encode_utterances
from treepiece.training.examples import Example

_BATCH = 128
_WEIGHTS = np.linspace(0.0, 2.0, 81)

Floats = npt.NDArray[np.float64]
Beam = tuple[Floats, Floats, int]
"""The log-probabilities of a beam's candidates, their scores, and which of them is right."""


def fit_weight(model: TreePieceModel, examples: Sequence[Example]) -> float:
    """Give the ranker the weight with which the right candidates are most probable, and return it.

    The examples have to be others than those that were trained on.
    """
    assert model.spans.ranker is not None  # asked only where there is one
    was_training = model.training
    model.eval()
    weight = best_weight(_beams(model, examples))
    model.spans.ranker.weight.fill_(weight)
    model.train(was_training)
    return weight


def best_weight(beams: Sequence[Beam]) -> float:
    """Return the w with which log p'(right) is the highest on average, p' being in proportion to p * exp(w * score).

    The unit decoder prefers the wrong candidate here, three to one, and the ranker the right one, e to one:

    >>> best_weight([(np.log([0.6, 0.2]), np.array([0.0, 1.0]), 1)])
    2.0
    """
    if not beams:
        return 1.0
    return float(max(_WEIGHTS, key=lambda weight: sum(_log_p(beam, weight) for beam in beams)))


def _log_p(beam: Beam, weight: float) -> float:
    log_p, scores, right = beam
    mixed = log_p + weight * scores
    return float(mixed[right] - np.logaddexp.reduce(mixed))


@torch.no_grad()
def _beams(model: TreePieceModel, examples: Sequence[Example]) -> list[Beam]:
    """Return the beams of several candidates that have the right one."""
    found: list[Beam] = []
    for start in range(0, len(examples), _BATCH):
        chunk = examples[start : start + _BATCH]
        memory = encode_utterances(model.encoder, [example.subwords for example in chunk])
        beams = model.search(memory, beam=CANDIDATES)
        skeletons = [[candidate.skeleton for candidate in few] for few in beams]
        scores = model.rank(model.read(skeletons, memory)).double().cpu().numpy()
        parts = np.split(scores, np.cumsum([len(few) for few in beams])[:-1])
        for example, few, names, part in zip(chunk, beams, skeletons, parts, strict=True):
            if len(few) > 1 and example.frame.skeleton in names:
                log_p = np.array([candidate.log_p for candidate in few])
                found.append((log_p, part, names.index(example.frame.skeleton)))
    return found
