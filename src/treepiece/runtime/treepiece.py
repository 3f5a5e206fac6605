"""The TreePiece parser on ONNX Runtime.

One run of the graph `parse` answers most utterances: it encodes, scores the first unit, and points at the spans of that
unit's leaves. Where the unit leaves placeholders open, and in a beam, `units` scores one more unit a step and `spans`
points at the leaves of the finished skeletons; where the model has a ranker, `spans` scores them too, and where it has
a judge, `judge` reads whole frames. What depends on units alone is kept once computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from treepiece.decoding.grammar import Partial
from treepiece.decoding.parse import Parse, fill_leaves
from treepiece.decoding.ranking import CANDIDATES, FAINTEST, SURE, rerank
from treepiece.decoding.search import Candidate, Logits, beam_search, merge_equal_trees
from treepiece.decoding.skeleton import read_skeleton
from treepiece.definition import Definition
from treepiece.runtime.chunks import chunks
from treepiece.runtime.graphs import PARSE, PREFIX, SKELETON, SPANS, UNITS, Array, Graphs
from treepiece.runtime.judging import JudgeRuntime
from treepiece.tokenizer.assembly import Order, assemble
from treepiece.trees.node import Node

_KEPT = 1 << 14

States = npt.NDArray[np.float32]


class TreePieceRuntime:
    """Scores from graphs, search from `decoding`. Threads may share it."""

    def __init__(self, definition: Definition, graphs: Graphs) -> None:
        self.grammar = definition.unit_grammar()
        self.graphs = graphs
        self.ranks, self.judges = definition.ranked, definition.judged
        """Whether the ranker and the judge look at beams: what they are worth can be seen by setting these to False."""
        self.sure = SURE
        """How probable a tree has to be to need no second look."""
        self._has_ranker = definition.ranked
        labels, longest = self.grammar.vocabulary.labels, definition.decoder.longest
        self._judge = JudgeRuntime(labels, longest, graphs) if definition.judged else None
        self.first = self.grammar.allowed(self.grammar.start())[np.newaxis]
        """Which units a tree may begin with. Shape: (1, units)."""
        self._start = len(self.grammar.vocabulary)
        self._label_ids = self.grammar.vocabulary.label_ids
        self._closing = len(self.grammar.vocabulary.labels)
        # Kept for each object, not for the class: what is kept goes with the object.
        self._tree = lru_cache(_KEPT)(self._assemble)
        self._prefix = lru_cache(_KEPT)(self._compute_prefix)
        self._rows = lru_cache(_KEPT)(self._compute_rows)

    def parse(self, ids: npt.NDArray[np.int64], *, beam: int = 1) -> list[list[Parse]]:
        """Return up to `beam` parses of each utterance, the most probable first. Shape: ids (batch, n)."""
        allowed = np.repeat(self.first, len(ids), axis=0)
        states, log_p, unit, spans = self.graphs.run(PARSE, {"ids": ids, "allowed": allowed})
        if beam > 1:
            return [self._search(states[item], log_p[item], beam) for item in range(len(ids))]
        return [[self._best(states[item], log_p[item], first, spans[item])] for item, first in enumerate(unit.tolist())]

    def _best(self, states: States, first: Array, unit: int, spans: Array) -> Parse:
        """Return the best parse, given the scores of the first unit: mostly that unit is all of it."""
        log_p = float(first[unit])
        if self._is_doubtful(log_p):
            return self._search(states, first, 1)[0]
        if not self.grammar.holes[unit]:
            skeleton, n_leaves = self._tree((unit,))
            end = 2 * n_leaves
            return fill_leaves(Candidate(skeleton, (unit,), log_p), spans[0:end:2], spans[1:end:2])
        begun = self.grammar.extend(self.grammar.start(), unit, log_p)
        (found,) = beam_search([begun], lambda rows: self._score(rows, states), self.grammar)
        if self._is_doubtful(found[0].log_p):
            return self._search(states, first, 1)[0]
        return self._fill([self._candidate(found[0])], states)[0]

    def _is_doubtful(self, log_p: float) -> bool:
        """Return whether a tree of this log-probability is to be looked at again, beside others."""
        return (self.ranks or self.judges) and math.exp(log_p) < self.sure

    def _search(self, states: States, first: Array, beam: int) -> list[Parse]:
        """Return the parses of one utterance in a beam, given the scores of its first unit."""

        def score(rows: Sequence[tuple[int, Partial]]) -> Logits:
            return self._score(rows, states) if rows[0][1].unit_ids else first[np.newaxis]

        width = max(beam, CANDIDATES) if self.ranks or self.judges else beam
        faintest = FAINTEST if beam == 1 else 0.0
        (found,) = beam_search([self.grammar.start()], score, self.grammar, beam=width, faintest=faintest)
        parses = self._fill(merge_equal_trees(found, self.grammar), states)
        if self._judge is not None and self.judges:
            parses = self._judge.judge(parses, states)
        return sorted(parses, key=lambda parse: -parse.log_p)[:beam]

    def _score(self, rows: Sequence[tuple[int, Partial]], states: States) -> Logits:
        """Return the logits of the next unit of each tree that is being written for one utterance."""
        prefixes = [self._prefix(partial.unit_ids, (*partial.filled, partial.open[-1])) for _, partial in rows]
        logits: list[Logits] = []
        for part in chunks(len(rows), len(states)):
            inputs = {"prefix": np.concatenate(prefixes[part]), "states": _repeat(states, len(prefixes[part]))}
            logits += self.graphs.run(UNITS, inputs)
        return logits[0] if len(logits) == 1 else np.concatenate(logits)

    def _fill(self, candidates: Sequence[Candidate], states: States) -> list[Parse]:
        """Return the skeletons with their spans, and with what the ranker makes of them."""
        read = [self._rows(candidate.skeleton) for candidate in candidates]
        spans: list[tuple[Array, Array]] = []
        totals: list[float] = []
        for part in chunks(len(read), len(states)):
            found, *scores = self._point([rows for rows, _ in read[part]], states)
            spans += [
                (of_rows[2 * leaves], of_rows[2 * leaves + 1])
                for of_rows, (_, leaves) in zip(found, read[part], strict=True)
            ]
            if self.ranks:
                few = zip(scores[0], read[part], strict=True)
                totals += [float(of_rows[: len(rows)].sum()) for of_rows, (rows, _) in few]
        if self.ranks:
            candidates = rerank(candidates, totals)
        return [fill_leaves(candidate, *pair) for candidate, pair in zip(candidates, spans, strict=True)]

    def _point(self, read: Sequence[Array], states: States) -> list[Array]:
        """Return what the graph `spans` says of the rows of some skeletons, in one run."""
        padded = np.zeros((len(read), max(1, *map(len, read)), states.shape[1]), np.float32)
        for place, rows in enumerate(read):
            padded[place, : len(rows)] = rows
        return self.graphs.run(SPANS, {"rows": padded, "states": _repeat(states, len(read))})

    def _candidate(self, partial: Partial) -> Candidate:
        return Candidate(self._tree(partial.unit_ids)[0], partial.unit_ids, partial.log_p)

    def _assemble(self, unit_ids: tuple[int, ...]) -> tuple[Node, int]:
        skeleton = assemble(unit_ids, self.grammar.vocabulary, Order.PRE)
        return skeleton, len(read_skeleton(skeleton, self._label_ids, self._closing).leaves)

    def _compute_prefix(self, unit_ids: tuple[int, ...], holes: tuple[int, ...]) -> Array:
        """Return what the unit decoder makes of a prefix. Shape: (1, width)."""
        inputs = {"units": np.array([(self._start, *unit_ids)]), "holes": np.array([holes])}
        return self.graphs.run(PREFIX, inputs)[0]

    def _compute_rows(self, skeleton: Node) -> tuple[Array, npt.NDArray[np.intp]]:
        """Return what the span decoder makes of the nodes of a skeleton, and which of them are its leaves.

        Without a ranker the leaves are all that is asked for. Shape: (nodes, width), (leaves,).
        """
        tokens, leaves = read_skeleton(skeleton, self._label_ids, self._closing)
        (states,) = self.graphs.run(SKELETON, {"tokens": np.array([tokens])})
        nodes = [place for place, token in enumerate(tokens) if token != self._closing] if self._has_ranker else leaves
        rows: Array = states[0, list(nodes)]
        return rows, np.searchsorted(nodes, leaves)


def _repeat(states: States, n: int) -> States:
    return np.repeat(states[np.newaxis], n, axis=0)
