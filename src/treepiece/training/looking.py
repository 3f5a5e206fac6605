"""Second looks at rows that a model was not trained on: what they see, once for all that is fitted to it.

How much the word of a ranker and of a judge counts, and when it is asked for, is fitted after each validation. Whatever
these numbers are, the candidates of a beam stay the same, and so does what is said of them. So each row that may be in
doubt is searched and read once, and the rest is arithmetic:

    score(candidate) = (1 - share) * (log p(units) + weight * rank + log p(spans)) + share * log q
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
import torch

from treepiece.decoding.parse import Parse
from treepiece.decoding.ranking import CANDIDATES, FAINTEST
from treepiece.models.treepiece import TreePieceModel
from treepiece.models.utterances import encode_utterances
from treepiece.training.doubting import Floats
from treepiece.training.examples import Example
from treepiece.trees.align import Span
from treepiece.trees.node import Node

_BATCH = 128


@dataclass(frozen=True)
class Look:
    """One row: how probable its greedy tree is, whether that answer is right, and what a look at its beam sees.

    `log_p`, `spans` and `ranks` have a number for each candidate, and so has `log_q`, which is None where the judge has
    no say. `right_skeleton` and `right` tell which candidate has the right skeleton, and which is right altogether.
    """

    p: float
    was_right: bool
    log_p: Floats
    spans: Floats
    ranks: Floats
    log_q: Floats | None
    right_skeleton: int | None
    right: int | None

    def opinion(self, weight: float) -> Floats:
        """Return what candidates score before the judge has seen them, with this weight of the ranker."""
        return self.log_p + weight * self.ranks + self.spans

    def gain(self, weight: float, share: float) -> int:
        """Return what the look does: 1 if it makes a wrong answer right, -1 for the other way round, and 0 else."""
        scores = self.opinion(weight)
        if self.log_q is not None:
            scores = (1 - share) * scores + share * self.log_q
        return int(int(scores.argmax()) == self.right) - int(self.was_right)


@torch.no_grad()
def look_again(model: TreePieceModel, examples: Sequence[Example], level: float) -> list[Look]:
    """Return looks at the rows whose greedy trees are less than `level` probable."""
    ordered = sorted(examples, key=lambda example: len(example.subwords.ids))  # so that batches have little padding
    chunks = (ordered[start : start + _BATCH] for start in range(0, len(ordered), _BATCH))
    return [look for chunk in chunks for look in _look_at(model, chunk, level)]


def _look_at(model: TreePieceModel, examples: Sequence[Example], level: float) -> Iterator[Look]:
    memory = encode_utterances(model.encoder, [example.subwords for example in examples])
    greedy = model.search(memory, beam=1)
    doubtful = [item for item, (tree,) in enumerate(greedy) if exp(tree.log_p) < level]
    if not doubtful:
        return
    memory = memory.select(doubtful)
    examples = [examples[item] for item in doubtful]
    found = model.search(memory, beam=CANDIDATES, faintest=FAINTEST)
    beams = [[*greedy[item], *few] for item, few in zip(doubtful, found, strict=True)]
    reading = model.read([[candidate.skeleton for candidate in few] for few in beams], memory)
    parses = model.point([example.subwords for example in examples], beams, reading)
    ranks = model.rank(reading).tolist() if model.ranks else [0.0] * sum(map(len, beams))
    log_q = model.read_frames([few for _, *few in parses], memory) if model.judges else [None] * len(beams)
    ends = np.cumsum([len(few) for few in beams])
    for example, few, (first, *others), end, q in zip(examples, beams, parses, ends, log_q, strict=True):
        log_p = np.array([candidate.log_p for candidate in few[1:]])
        skeleton, spans = example.frame.skeleton, tuple(example.spans)
        yield Look(
            exp(few[0].log_p),
            _is_right(first, skeleton, spans),
            log_p,
            np.array([parse.log_p for parse in others]) - log_p,
            _finite(ranks[end - len(others) : end]),
            None if q is None else _finite(q.tolist()),
            next((place for place, parse in enumerate(others) if parse.skeleton == skeleton), None),
            next((place for place, parse in enumerate(others) if _is_right(parse, skeleton, spans)), None),
        )


def _is_right(parse: Parse, skeleton: Node, spans: tuple[Span, ...]) -> bool:
    return (parse.skeleton, parse.spans) == (skeleton, spans)


def _finite(values: Sequence[float]) -> Floats:
    """Return scores as the search takes them: what is no number says nothing."""
    return np.nan_to_num(np.asarray(values, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
