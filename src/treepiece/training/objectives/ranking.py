"""The ranker's loss: of the skeletons in a beam, the gold one is the best.

The candidates come from the model as it is at that step, so that the ranker learns to tell apart what the unit decoder
confuses. Searching costs time, and most rows have nothing to confuse: only those of each batch are searched whose gold
tree is the least probable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from treepiece.decoding.grammar import Partial
from treepiece.decoding.ranking import CANDIDATES
from treepiece.decoding.search import Logits, search_units
from treepiece.models.treepiece import TreePieceModel
from treepiece.models.utterances import Memory, to_numpy
from treepiece.training.losses import IGNORED
from treepiece.training.recipe import RankingConfig
from treepiece.trees.node import Node

_STEPS = 4
"""A model that knows little yet writes trees without end: candidates of more units than this are left out."""


class RankingLoss:
    """Searches for candidates and has the ranker choose among them and the gold skeleton."""

    def __init__(self, model: TreePieceModel, config: RankingConfig) -> None:
        self._model = model
        self._config = config

    def __call__(self, gold: Sequence[Node], logits: Tensor, wanted: Tensor, memory: Memory, symbols: Tensor) -> Tensor:
        """Return the mean of -log p(gold | candidates) over the rows that were searched.

        `logits` are those of the next unit, `wanted` the gold units, and `symbols` the embeddings of all units. Shape:
        (batch, steps, units), (batch, steps), (units + 1, width).
        """
        rows = self._least_probable(logits, wanted)
        chosen = memory.select(rows)
        beams = self._candidates([gold[row] for row in rows], logits[rows, 0], chosen, symbols)
        return self._choose(beams, chosen)

    def _least_probable(self, logits: Tensor, wanted: Tensor) -> list[int]:
        """Return the rows whose gold tree the unit decoder finds least probable."""
        log_p = logits.log_softmax(-1).gather(-1, wanted.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        log_p = log_p.masked_fill(wanted == IGNORED, 0.0).sum(1)
        n = math.ceil(self._config.share * len(log_p))
        return log_p.argsort(stable=True)[:n].tolist()

    @torch.no_grad()
    def _candidates(self, gold: Sequence[Node], first: Tensor, memory: Memory, symbols: Tensor) -> list[list[Node]]:
        """Return for each row the gold skeleton and then what else the beam has."""

        def score(partials: Sequence[tuple[int, Partial]]) -> Logits:
            if not partials[0][1].unit_ids:  # all begin together, and how is known from the unit decoder's own loss
                return to_numpy(first)
            return self._model.score(partials, memory, symbols)

        found = search_units(len(gold), score, self._model.grammar, beam=CANDIDATES, steps=_STEPS)
        return [
            [wanted, *[candidate.skeleton for candidate in few if candidate.skeleton != wanted][: CANDIDATES - 1]]
            for wanted, few in zip(gold, found, strict=True)
        ]

    def _choose(self, beams: Sequence[Sequence[Node]], memory: Memory) -> Tensor:
        scores = self._model.rank(self._model.read(beams, memory))
        log_p = [few.log_softmax(0)[0] for few in torch.split(scores, [len(few) for few in beams])]
        return -torch.stack(log_p).mean()
