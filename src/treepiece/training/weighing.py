"""How much the word of a ranker and of a judge counts, and when it is asked for.

Each weight is one number, fitted where it will be used: on rows that the search is in doubt of, and whose beam has the
right candidate. The ranker's comes first: the judge sees what the ranker has made of a beam. With both known it can be
seen when a second look is worth it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from treepiece.decoding.ranking import SURE
from treepiece.models.treepiece import TreePieceModel
from treepiece.models.utterances import Memory, encode_utterances
from treepiece.training.doubting import fit_sureness
from treepiece.training.examples import Example

FITTED = 2000
"""How many rows are enough for a weight, a single number: a tenth of them are in doubt."""
_BATCH = 128
_WEIGHTS = np.linspace(0.0, 4.0, 81)
_TEMPERATURES = np.geomspace(0.5, 8.0, 25)
_NEVER = -1e8

Floats = npt.NDArray[np.float64]
Beam = tuple[Floats, Floats, int]
"""The log-probabilities of a beam's candidates, their scores, and which of them is right."""


def fit_weights(model: TreePieceModel, examples: Sequence[Example]) -> None:
    """Give the ranker and the judge, as far as there are, the weights with which right candidates are most probable.

    And give the model the level from which on it is sure without them.

    The examples have to be others than those that were trained on.
    """
    was_training = model.training
    model.eval()
    model.sure.fill_(SURE)
    examples = sorted(examples, key=lambda example: len(example.subwords.ids))  # so that batches have little padding
    if model.spans.ranker is not None and model.ranks:
        model.spans.ranker.weight.fill_(best_weight(_ranked_beams(model, examples)))
    if model.judge is not None and model.judges:
        model.judge.weight.fill_(best_weight(_judged_beams(model, examples)))
    if model.ranks or model.judges:
        fit_sureness(model, examples)
    model.train(was_training)


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


@torch.no_grad()
def _ranked_beams(model: TreePieceModel, examples: Sequence[Example]) -> list[Beam]:
    """Return the beams of doubtful rows that have the right skeleton, and the ranker's scores."""
    found: list[Beam] = []
    for chunk, memory in _batches(model, examples):
        beams = model.search_for(memory, beam=1)
        skeletons = [[candidate.skeleton for candidate in few] for few in beams]
        scores = model.rank(model.read(skeletons, memory)).double().cpu().numpy()
        parts = np.split(scores, np.cumsum([len(few) for few in beams])[:-1])
        for example, few, names, part in zip(chunk, beams, skeletons, parts, strict=True):
            if len(few) > 1 and example.frame.skeleton in names:
                log_p = np.array([candidate.log_p for candidate in few])
                found.append((log_p, part, names.index(example.frame.skeleton)))
    return found


@torch.no_grad()
def _judged_beams(model: TreePieceModel, examples: Sequence[Example]) -> list[Beam]:
    """Return the beams of doubtful rows that have the right frame, and the judge's scores."""
    found: list[Beam] = []
    for chunk, memory in _batches(model, examples):
        beams = model.candidates([example.subwords for example in chunk], memory, beam=1)
        for example, few, scores in zip(chunk, beams, model.read_frames(beams, memory), strict=True):
            frames = [(parse.skeleton, parse.spans) for parse in few]
            right = example.frame.skeleton, tuple(example.spans)
            if scores is not None and right in frames:
                log_p = np.array([parse.log_p for parse in few])
                found.append((log_p, scores.double().cpu().numpy(), frames.index(right)))
    return found


def _batches(model: TreePieceModel, examples: Sequence[Example]) -> Iterator[tuple[Sequence[Example], Memory]]:
    for start in range(0, len(examples), _BATCH):
        chunk = examples[start : start + _BATCH]
        yield chunk, encode_utterances(model.encoder, [example.subwords for example in chunk])
