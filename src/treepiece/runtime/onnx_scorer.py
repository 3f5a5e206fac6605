"""The TreePiece parser on ONNX Runtime.

One run of the graph `parse` answers most utterances: it encodes, scores the first unit, and points at the spans of that
unit's leaves. Where the unit leaves placeholders open, and in beam search, `units` scores the next unit, `spans` points
at the leaves of complete skeletons, and `reranker` scores whole frames. The results of `prefix` and `skeleton` depend
on units alone and are cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from treepiece.decoding.linearization import TokenVocabulary, read_skeleton
from treepiece.decoding.pipeline import DecodingPipeline
from treepiece.decoding.scorer import FirstUnits, SpanScores
from treepiece.decoding.search import Logits, Partial
from treepiece.decoding.types import DecodingConfig, Derivation, Hypothesis
from treepiece.definition import Definition
from treepiece.runtime.sessions import (
    PARSE,
    PREFIX,
    RERANKER,
    SKELETON,
    SPANS,
    UNITS,
    Array,
    Decoded,
    Graphs,
    Input,
    Signature,
)
from treepiece.scope import States
from treepiece.trees.frame import leaf_labels
from treepiece.trees.node import Node

_CACHED = 1 << 14
_MAX_STATES = 1 << 13
_START = -1


class TreePieceRuntime:
    """A TreePiece parser on graphs: scores from here, everything else from `decoding`. Threads may share it."""

    def __init__(self, definition: Definition, graphs: Graphs, config: DecodingConfig) -> None:
        self.grammar = definition.unit_grammar()
        self.graphs = graphs
        self.config = config
        self.pipeline = DecodingPipeline(
            self.grammar, max_length=definition.decoder.max_length, has_reranker=definition.extensions.reranker
        )
        self.tokens = TokenVocabulary(self.grammar.vocabulary.labels)
        self.allowed = self.grammar.allowed(self.grammar.start())[np.newaxis]
        """Which units a tree may begin with. Shape: (1, units)."""
        # Cached per object, not per class, so that the cache is freed with the object.
        self.prefix_state = lru_cache(_CACHED)(self._prefix_state)
        self.leaf_states = lru_cache(_CACHED)(self._leaf_states)

    @staticmethod
    def signatures(definition: Definition, width: int) -> dict[str, Signature]:
        """Return the signatures of the graphs, the first graph of a parse first; `width` is the encoder's."""
        n_units = len(definition.unit_grammar().vocabulary)
        ids, states = Input("int64", ("batch", "n")), Input("float", ("batch", "n", width))
        frames = Input("int64", ("frames", "m"))
        reranker = {"symbols": frames, "subwords": frames, "targets": frames, "states": Input("float", (1, "n", width))}
        steps = Input("int64", (1, "steps"))
        return {
            PARSE: Signature(
                {"ids": ids, "allowed": Input("bool", ("batch", n_units))}, ("states", "log_p", "unit", "spans")
            ),
            UNITS: Signature({"prefix": Input("float", ("batch", width)), "states": states}, ("logits",)),
            SPANS: Signature({"rows": Input("float", ("batch", "rows", width)), "states": states}, ("spans",)),
            PREFIX: Signature({"units": steps, "placeholders": steps}, ("prefix",)),
            SKELETON: Signature({"tokens": Input("int64", (1, "m"))}, ("states",)),
            **({RERANKER: Signature(reranker, ("log_p",))} if definition.extensions.reranker else {}),
        }

    def parse(self, ids: npt.NDArray[np.int64], *, nbest: int = 1) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each utterance, the best first. Shape: ids (batch, n)."""
        return [one.hypotheses for one in self.decode(ids, nbest=nbest)]

    def decode(self, ids: npt.NDArray[np.int64], *, nbest: int = 1) -> list[Decoded]:
        """Return the same together with the encoder's states.

        Each utterance is decoded on its own, so that its result does not depend on the rest of the batch.
        """
        allowed = np.repeat(self.allowed, len(ids), axis=0)
        states, log_p, unit, spans = self.graphs[PARSE].run(None, {"ids": ids, "allowed": allowed})
        found = []
        for item, first in enumerate(unit.tolist()):
            scorer = OnnxScorer(self, states[item], FirstUnits(log_p[item : item + 1], [first]), spans[item])
            (hypotheses,) = self.pipeline.decode(scorer, self.config, nbest=nbest)
            found.append(Decoded(hypotheses, states[item]))
        return found

    def _prefix_state(self, unit_ids: tuple[int, ...], placeholders: tuple[int, ...]) -> Array:
        """Return the unit decoder's state of a prefix. Shape: (1, width)."""
        units = (len(self.grammar.vocabulary), *unit_ids)  # the id of the start symbol follows those of the units
        inputs = {"units": np.array([units]), "placeholders": np.array([placeholders])}
        state: Array = self.graphs[PREFIX].run(None, inputs)[0]
        return state

    def _leaf_states(self, skeleton: Node) -> Array:
        """Return the span decoder's states of the leaves of a skeleton. Shape: (leaves, width)."""
        vocabulary = self.grammar.vocabulary
        tokens, leaves = read_skeleton(skeleton, vocabulary.label_ids, len(vocabulary.labels))
        (states,) = self.graphs[SKELETON].run(None, {"tokens": np.array([tokens])})
        rows: Array = states[0, list(leaves)]
        return rows


@dataclass
class OnnxScorer:
    """Scores one utterance that the graph `parse` has encoded (see `decoding.scorer`). Shape: states (n, width)."""

    runtime: TreePieceRuntime
    states: States
    first: FirstUnits
    first_spans: Array
    """The scores of the spans of the best first unit, if that is a whole tree."""

    def first_units(self) -> FirstUnits:
        """Return the scores of the first unit."""
        return self.first

    def next_units(self, rows: Sequence[tuple[int, Partial]]) -> Logits:
        """Return the logits of the next unit of partial trees. Shape: (rows, units)."""
        prefixes = [self.runtime.prefix_state(one.unit_ids, (*one.filled, one.open[-1])) for _, one in rows]
        logits: list[Logits] = []
        for part in chunks(len(rows), len(self.states)):
            inputs = {"prefix": np.concatenate(prefixes[part]), "states": self._repeat(len(prefixes[part]))}
            logits += self.runtime.graphs[UNITS].run(None, inputs)
        return logits[0] if len(logits) == 1 else np.concatenate(logits)

    def spans(self, rows: Sequence[tuple[int, Derivation]]) -> list[SpanScores]:
        """Return the scores of the spans of complete skeletons; those of the best first unit are known already."""
        first = tuple(self.first.best)
        unknown = [one.skeleton for _, one in rows if one.unit_ids != first]
        known = iter(self._point(unknown) if unknown else ())
        return [self._first_spans(one) if one.unit_ids == first else next(known) for _, one in rows]

    def rerank(self, rows: Sequence[tuple[int, Sequence[int]]]) -> list[float]:
        """Return the reranker's log-probabilities of whole frames."""
        frames = [tokens for _, tokens in rows]
        return [log_q for part in chunks(len(frames), len(self.states)) for log_q in self._score_frames(frames[part])]

    def _first_spans(self, derivation: Derivation) -> SpanScores:
        end = 2 * len(leaf_labels(derivation.skeleton))
        return SpanScores(self.first_spans[0:end:2], self.first_spans[1:end:2])

    def _point(self, skeletons: Sequence[Node]) -> list[SpanScores]:
        rows = [self.runtime.leaf_states(skeleton) for skeleton in skeletons]
        found: list[SpanScores] = []
        for part in chunks(len(rows), len(self.states)):
            few = rows[part]
            padded = np.zeros((len(few), max(1, *map(len, few)), self.states.shape[1]), np.float32)
            for place, one in enumerate(few):
                padded[place, : len(one)] = one
            (spans,) = self.runtime.graphs[SPANS].run(None, {"rows": padded, "states": self._repeat(len(few))})
            ends = (2 * len(one) for one in few)
            found += [SpanScores(one[0:end:2], one[1:end:2]) for one, end in zip(spans, ends, strict=True)]
        return found

    def _score_frames(self, frames: Sequence[Sequence[int]]) -> list[float]:
        targets = np.zeros((len(frames), max(map(len, frames))), np.int64)
        before = np.full_like(targets, _START)
        for row, tokens in enumerate(frames):
            targets[row, : len(tokens)] = tokens
            before[row, 1 : len(tokens)] = tokens[:-1]
        blank = self.runtime.tokens.first_pointer  # the start, padding, and the symbol of a pointer
        inputs = {
            "symbols": np.where((before == _START) | (before >= blank), blank, before),
            "subwords": np.maximum(before - blank + 1, 0),
            "targets": targets,
            "states": self.states[np.newaxis],
        }
        (log_p,) = self.runtime.graphs[RERANKER].run(None, inputs)
        return [float(row[: len(tokens)].sum()) for row, tokens in zip(log_p, frames, strict=True)]

    def _repeat(self, n: int) -> States:
        return np.repeat(self.states[np.newaxis], n, axis=0)


def chunks(n_rows: int, length: int) -> list[slice]:
    """Return the rows of each run, given the length of their text.

    Every row of a run needs the encoder's states of the whole text: a beam of 200 on a text of 500 subwords would take
    gigabytes. The size of a run depends on the length alone, never on other texts: in int8 the rows of a run share the
    scale of rounding, so different runs could give different results.

    >>> chunks(200, 40)
    [slice(0, 200, None)]
    >>> chunks(40, 500)
    [slice(0, 16, None), slice(16, 32, None), slice(32, 40, None)]
    """
    size = max(1, _MAX_STATES // max(1, length))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
