"""From scores to parses: greedy search, threshold, beam search, spans, reranking, confidence.

    greedy search    the most probable unit fills each placeholder              most parses end here
    threshold        a skeleton less probable than `rerank_threshold` continues
    beam search      other skeletons, starting with the scores of greedy search
    spans            the best spans of every skeleton
    reranking        the reranker scores whole frames; its scores are interpolated with the parser's
    confidence       a temperature turns log-probabilities into calibrated confidences

Training, evaluation and both runtimes use this code with different implementations of `Scorer`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from treepiece.decoding.linearization import TokenVocabulary
from treepiece.decoding.scorer import Scorer, SpanScores
from treepiece.decoding.search import Logits, Partial, Score, UnitGrammar, beam_search
from treepiece.decoding.spans import best_spans
from treepiece.decoding.types import DecodingConfig, Derivation, Hypothesis, NBest
from treepiece.tokenizer.assembly import Order, assemble
from treepiece.trees.align import Span
from treepiece.trees.frame import leaf_labels
from treepiece.trees.node import Node

_CACHED_SKELETONS = 1 << 14


class DecodingPipeline:
    """Decodes the scores of a scorer. Its only state is a cache of skeletons, so threads may share it."""

    def __init__(self, grammar: UnitGrammar, *, max_length: int, has_reranker: bool) -> None:
        self.grammar = grammar
        self._max_length = max_length
        self._tokens = TokenVocabulary(grammar.vocabulary.labels) if has_reranker else None
        self.skeleton = lru_cache(_CACHED_SKELETONS)(lambda unit_ids: assemble(unit_ids, grammar.vocabulary, Order.PRE))

    def decode(self, scorer: Scorer, config: DecodingConfig, *, nbest: int = 1) -> list[list[Hypothesis]]:
        """Return up to `nbest` hypotheses for each utterance, the best first.

        The best hypothesis and its probabilities do not depend on `nbest`: it only adds hypotheses after it.
        """
        scores = _UnitScores(scorer)
        found = self._search(scores, config)
        if nbest == 1:
            return [choose(one, config)[:1] for one in found]
        others = self._alternatives(scores, config, found, nbest)
        return [choose(one, config, beyond)[:nbest] for one, beyond in zip(found, others, strict=True)]

    def search(self, scorer: Scorer, config: DecodingConfig) -> list[NBest]:
        """Return the greedy hypothesis of each utterance, or a beam of hypotheses if it is not probable enough."""
        return self._search(_UnitScores(scorer), config)

    def _search(self, scores: _UnitScores, config: DecodingConfig) -> list[NBest]:
        scorer, greedy = scores.scorer, self._greedy(scores)
        threshold = config.rerank_threshold if self._tokens else 0.0
        low = [item for item, partial in enumerate(greedy) if math.exp(partial.log_p) < threshold]
        derivations = [[self._derivation(partial)] for partial in greedy]
        if low:
            for item, few in zip(low, self._beam(scores, low, config.beam, config.prune_ratio), strict=True):
                derivations[item] = few
        hypotheses = self._fill(scorer, derivations)
        several = [item for item in low if len(hypotheses[item]) > 1]  # a single one wins in any case
        for item, beam in zip(several, self._rerank(scorer, hypotheses, several), strict=True):
            hypotheses[item] = beam
        return [NBest(partial.log_p, tuple(one)) for partial, one in zip(greedy, hypotheses, strict=True)]

    def _greedy(self, scores: _UnitScores) -> list[Partial]:
        start = self.grammar.start()
        log_p, best = scores.first
        partials = [self.grammar.extend(start, unit, float(row[unit])) for unit, row in zip(best, log_p, strict=True)]
        unfinished = [item for item, partial in enumerate(partials) if not partial.is_complete]
        if unfinished:
            found = beam_search([partials[item] for item in unfinished], scores.of(unfinished), self.grammar)
            for item, (partial,) in zip(unfinished, found, strict=True):
                partials[item] = partial
        return partials

    def _beam(
        self, scores: _UnitScores, items: Sequence[int], width: int, prune_ratio: float
    ) -> list[list[Derivation]]:
        starts = [self.grammar.start()] * len(items)
        found = beam_search(starts, scores.of(items), self.grammar, beam=width, prune_ratio=prune_ratio)
        return [self._merge(partials) for partials in found]

    def _merge(self, beam: Sequence[Partial]) -> list[Derivation]:
        """Return the skeletons of a beam; the probabilities of unit sequences with the same skeleton are added up."""
        merged: dict[Node, Derivation] = {}
        for partial in beam:
            new = self._derivation(partial)
            old = merged.get(new.skeleton)
            if old is not None:
                new = replace(old, log_p=float(np.logaddexp(old.log_p, new.log_p)))
            merged[new.skeleton] = new
        return sorted(merged.values(), key=lambda one: -one.log_p)

    def _fill(self, scorer: Scorer, derivations: Sequence[Sequence[Derivation]]) -> list[list[Hypothesis]]:
        rows = [(item, one) for item, few in enumerate(derivations) for one in few]
        filled: list[list[Hypothesis]] = [[] for _ in derivations]
        for (item, one), scores in zip(rows, scorer.spans(rows), strict=True):
            filled[item].append(fill_leaves(one, scores))
        return filled

    def _rerank(
        self, scorer: Scorer, hypotheses: Sequence[Sequence[Hypothesis]], items: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of some utterances with the reranker's scores; a frame too long for it gets none."""
        if self._tokens is None or not items:
            return []
        frames = [
            (item, one, self._tokens.write(one.skeleton, one.spans)) for item in items for one in hypotheses[item]
        ]
        rows = [(item, tokens) for item, _, tokens in frames if len(tokens) <= self._max_length]
        log_q = iter(scorer.rerank(rows) if rows else ())
        found: dict[int, list[Hypothesis]] = {item: [] for item in items}
        for item, one, tokens in frames:
            if len(tokens) <= self._max_length:
                one = replace(one, reranker_log_p=next(log_q), passes=one.passes + 1)
            found[item].append(one)
        return list(found.values())

    def _alternatives(
        self, scores: _UnitScores, config: DecodingConfig, found: Sequence[NBest], nbest: int
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses that a wider beam adds; if the first beam was reranked, so are the added ones."""
        width = max(config.beam, 2 * nbest)  # equal skeletons are merged, so the beam is wider than the list
        beams = self._beam(scores, range(len(found)), width, prune_ratio=0.0)
        known = [{one.skeleton for one in few.hypotheses} for few in found]
        added = self._fill(
            scores.scorer,
            [[one for one in few if one.skeleton not in seen] for few, seen in zip(beams, known, strict=True)],
        )
        reranked = [item for item, few in enumerate(found) if few.is_reranked]
        for item, few in zip(reranked, self._rerank(scores.scorer, added, reranked), strict=True):
            added[item] = [one for one in few if one.has_reranker_score]
        return added

    def _derivation(self, partial: Partial) -> Derivation:
        return Derivation(self.skeleton(partial.unit_ids), partial.unit_ids, partial.log_p)


class _UnitScores:
    """Caches the unit scores of a batch, so that beam search reuses those of greedy search."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self.first = scorer.first_units()
        self._known: dict[tuple[int, tuple[int, ...]], Logits] = {}

    def of(self, items: Sequence[int]) -> Score[Partial]:
        """Return the score function of a search over some of the utterances."""
        return lambda rows: self._look_up([(items[place], partial) for place, partial in rows])

    def _look_up(self, rows: Sequence[tuple[int, Partial]]) -> Logits:
        keys = [(item, partial.unit_ids) for item, partial in rows]
        new = [row for row, key in zip(rows, keys, strict=True) if key[1] and key not in self._known]
        if new:
            for (item, partial), logits in zip(new, self.scorer.next_units(new), strict=True):
                self._known[item, partial.unit_ids] = logits
        return np.stack([self._known[key] if key[1] else self.first.log_p[key[0]] for key in keys])


def fill_leaves(derivation: Derivation, scores: SpanScores) -> Hypothesis:
    """Return a skeleton with the best spans of its leaves."""
    spans, span_log_p = best_spans(scores.starts, scores.ends)
    return Hypothesis.of_parts(
        derivation.skeleton,
        tuple(spans),
        derivation.log_p,
        tuple(span_log_p),
        passes=len(derivation.unit_ids) + bool(spans),
        unit_ids=derivation.unit_ids,
    )


def choose(found: NBest, config: DecodingConfig, beyond: Sequence[Hypothesis] = ()) -> list[Hypothesis]:
    """Return the hypotheses of one utterance after reranking, the best first.

    If the reranker has scored a beam, each hypothesis h gets the interpolated score

        s(h) = (1 - w) * log p(h) + w * log q(h)

    and a probability in proportion to exp(s(h)), such that the beam as a whole is as probable as before: probability
    only moves between hypotheses. Hypotheses from `beyond` the beam share their own probability in the same way; they
    follow the best and do not change it.

    The parser prefers A, the reranker B, and the reranker is more certain:

    >>> a = Hypothesis.of_parts(Node("IN:A"), (), math.log(0.5), (), passes=1)
    >>> b = Hypothesis.of_parts(Node("IN:B"), (), math.log(0.3), (), passes=1)
    >>> beam = replace(a, reranker_log_p=math.log(0.1)), replace(b, reranker_log_p=math.log(0.9))
    >>> best, other = choose(NBest(a.log_p, beam), DecodingConfig(reranker_weight=0.5))
    >>> best.skeleton, round(math.exp(best.log_p), 2), round(math.exp(other.log_p), 2)
    (Node('[IN:B ]'), 0.56, 0.24)
    """
    beam, others = list(found.hypotheses), list(beyond)
    if found.is_reranked:
        beam, others = (_interpolate(few, config.reranker_weight) for few in (beam, others))
    best = max(beam, key=lambda one: one.log_p)
    return [best, *sorted((one for one in (*beam, *others) if one is not best), key=lambda one: -one.log_p)]


def _interpolate(hypotheses: Sequence[Hypothesis], weight: float) -> list[Hypothesis]:
    """Return hypotheses with their probabilities after reranking.

    A leaf can be right in several skeletons. So its probability is the sum, over the hypotheses that have it, of
    the probability of the skeleton times that of the span. Skeletons exclude each other: it is at most 1.
    """
    own = np.array([one.log_p for one in hypotheses])
    skeletons = np.array([one.unit_log_p for one in hypotheses])
    log_q = np.array([one.reranker_log_p for one in hypotheses], np.float64)
    scores = (1 - weight) * own + weight * log_q
    shares = scores - np.logaddexp.reduce(scores)
    log_p = shares + np.logaddexp.reduce(own)
    skeletons = shares + np.logaddexp.reduce(skeletons)
    leaves: dict[tuple[str, Span], float] = {}
    for one, skeleton in zip(hypotheses, skeletons.tolist(), strict=True):
        for leaf, span in zip(_leaves(one), one.span_log_p, strict=True):
            leaves[leaf] = float(np.logaddexp(leaves.get(leaf, -math.inf), skeleton + span))
    return [
        replace(one, log_p=min(0.0, value), leaf_log_p=tuple(min(0.0, leaves[leaf]) for leaf in _leaves(one)))
        for one, value in zip(hypotheses, log_p.tolist(), strict=True)
    ]


def _leaves(hypothesis: Hypothesis) -> list[tuple[str, Span]]:
    return list(zip(leaf_labels(hypothesis.skeleton), hypothesis.spans, strict=True))


def confidence(log_p: float, temperature: float) -> float:
    """Return a calibrated probability, p ** (1 / temperature).

    >>> round(confidence(math.log(0.25), 2.0), 6)
    0.5
    """
    return math.exp(min(0.0, log_p) / temperature)
