"""The pipeline, with scores from a table: what is probable, what reranking changes, and what it must not change."""

import math
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treepiece import TokenizerConfig, TreePieceTokenizer, parse_brackets
from treepiece.data.toy import toy_frames
from treepiece.decoding.pipeline import DecodingPipeline, choose, confidence
from treepiece.decoding.scorer import FirstUnits, SpanScores
from treepiece.decoding.search import UnitGrammar, label_pairs, log_softmax
from treepiece.decoding.types import DecodingConfig, Hypothesis, NBest
from treepiece.errors import BundleError
from treepiece.tokenizer.assembly import Order, assemble
from treepiece.trees.align import Span
from treepiece.trees.frame import leaf_labels
from treepiece.trees.node import Node

SKELETONS = [frame.skeleton for frame in toy_frames(300)]
TOY = UnitGrammar(
    TreePieceTokenizer.train(SKELETONS, TokenizerConfig(merges=40)).units, label_pairs(SKELETONS), budget=12
)
SMALL_TREES = [parse_brackets(text, any_label=True) for text in ("[A [B ] [B ] ]", "[A [B [A ] ] ]", "[A ]")]
SMALL = UnitGrammar(
    TreePieceTokenizer.train(SMALL_TREES * 3, TokenizerConfig(merges=3)).units, label_pairs(SMALL_TREES), budget=6
)
N_SUBWORDS = 6


class TableScorer:
    """Scores that depend on the utterance and on what is scored, and on nothing else; it notes what it was asked."""

    def __init__(self, grammar, items, scale=2.0, poison=None):
        self.grammar, self.items, self.scale, self.poison = grammar, items, scale, poison
        self.asked, self.pointed, self.reranked = [], [], []

    def _draw(self, item, name, shape):
        rng = np.random.default_rng([self.items[item], zlib.crc32(name.encode())])
        return rng.normal(size=shape) * self.scale

    def first_units(self):
        start = self.grammar.start()
        logits = np.array([self._draw(item, "()", len(self.grammar.vocabulary)) for item in range(len(self.items))])
        log_p = log_softmax(logits, np.repeat(self.grammar.allowed(start)[None], len(self.items), axis=0))
        return FirstUnits(log_p, log_p.argmax(axis=1).tolist())

    def next_units(self, rows):
        self.asked += [(item, partial.unit_ids) for item, partial in rows]
        n = len(self.grammar.vocabulary)
        return np.array([self._draw(item, str(partial.unit_ids), n) for item, partial in rows])

    def spans(self, rows):
        self.pointed += [(item, derivation.skeleton) for item, derivation in rows]
        found = []
        for item, derivation in rows:
            shape = 2, len(leaf_labels(derivation.skeleton)), N_SUBWORDS
            logits = self._draw(item, str(derivation.skeleton), shape).reshape(-1, N_SUBWORDS)
            log_p = log_softmax(logits, np.ones(logits.shape, bool)).reshape(shape)
            found.append(SpanScores(*log_p))
        return found

    def rerank(self, rows):
        self.reranked += [(item, tuple(tokens)) for item, tokens in rows]
        if self.poison is not None:
            return [self.poison] * len(rows)
        return [-abs(float(self._draw(item, str(tokens), ()))) * 3 for item, tokens in rows]


def pipeline(grammar, *, max_length=64, has_reranker=True):
    return DecodingPipeline(grammar, max_length=max_length, has_reranker=has_reranker)


def every_tree(grammar, scorer, item):
    """Return every skeleton within the budget with its probability, by enumeration of the unit sequences."""
    found, todo = {}, [grammar.start()]
    while todo:
        partial = todo.pop()
        if partial.is_complete:
            skeleton = assemble(partial.unit_ids, grammar.vocabulary, Order.PRE)
            found[skeleton] = found.get(skeleton, 0.0) + math.exp(partial.log_p)
            continue
        allowed = grammar.allowed(partial)
        log_p = log_softmax(scorer.next_units([(item, partial)]), allowed[None])[0]
        todo += [grammar.extend(partial, unit, float(log_p[unit])) for unit in np.flatnonzero(allowed).tolist()]
    return found


@pytest.mark.parametrize("item", range(4))
def test_a_wide_beam_finds_every_tree_with_its_probability(item):
    scorer = TableScorer(SMALL, [item])
    every = every_tree(SMALL, scorer, 0)
    assert sum(every.values()) == pytest.approx(1.0)
    config = DecodingConfig(beam=1000, rerank_threshold=1.0, prune_ratio=0.0)
    (found,) = pipeline(SMALL).search(scorer, config)
    assert {one.skeleton: math.exp(one.unit_log_p) for one in found.hypotheses} == pytest.approx(every)


@given(st.integers(0, 1000), st.floats(0, 1), st.sampled_from([1, 2, 3, 10]))
@settings(max_examples=60)
def test_the_best_hypothesis_does_not_depend_on_how_many_are_asked_for(seed, threshold, nbest):
    items = [seed, seed + 1, seed + 2]
    config = DecodingConfig(rerank_threshold=threshold, reranker_weight=0.6)
    alone = pipeline(TOY).decode(TableScorer(TOY, items), config)
    several = pipeline(TOY).decode(TableScorer(TOY, items), config, nbest=nbest)
    assert [few[:1] for few in several] == alone
    for few in several:
        assert 1 <= len(few) <= nbest
        assert len({one.skeleton for one in few}) == len(few)
        assert [one.log_p for one in few[1:]] == sorted((one.log_p for one in few[1:]), reverse=True)


@given(st.integers(0, 1000), st.floats(0, 1), st.floats(0, 1), st.floats(0, 20), st.integers(1, 6))
@settings(max_examples=80)
def test_parses_and_leaves_have_probabilities_before_and_after_reranking(seed, threshold, weight, scale, nbest):
    config = DecodingConfig(rerank_threshold=threshold, reranker_weight=weight)
    for few in pipeline(TOY).decode(TableScorer(TOY, [seed, seed + 1], scale), config, nbest=nbest):
        for one in few:
            assert one.log_p <= 0
            assert len(one.leaf_log_p) == len(one.span_log_p) == len(one.spans)
            assert all(value <= 0 for value in (*one.leaf_log_p, *one.span_log_p, one.unit_log_p))


@given(st.integers(0, 1000), st.floats(0, 1), st.floats(0, 1), st.floats(0, 5), st.integers(1, 12))
@settings(max_examples=60)
def test_candidates_exclude_each_other(seed, threshold, weight, scale, nbest):
    """Their probabilities add up to one at most, whatever the reranker says and however many are asked for."""
    config = DecodingConfig(beam=3, rerank_threshold=threshold, reranker_weight=weight)
    for few in pipeline(TOY).decode(TableScorer(TOY, [seed, seed + 1], scale), config, nbest=nbest):
        assert sum(math.exp(one.log_p) for one in few) <= 1 + 1e-9


@given(st.integers(0, 1000), st.floats(0.2, 1))
@settings(max_examples=40)
def test_utterances_do_not_influence_each_other(seed, threshold):
    items = [seed, seed + 1, seed + 2, seed + 3]
    config = DecodingConfig(rerank_threshold=threshold)
    together = pipeline(TOY).decode(TableScorer(TOY, items), config, nbest=2)
    assert together == [pipeline(TOY).decode(TableScorer(TOY, [item]), config, nbest=2)[0] for item in items]


@given(st.integers(0, 1000))
@settings(max_examples=40)
def test_a_low_confidence_parse_goes_on_from_its_greedy_result(seed):
    scorer = TableScorer(TOY, [seed, seed + 1])
    pipeline(TOY).decode(scorer, DecodingConfig(rerank_threshold=1.0), nbest=3)
    for asked in (scorer.asked, scorer.pointed, scorer.reranked):
        assert len(asked) == len(set(asked)), "nothing is scored twice"


@given(st.integers(0, 1000), st.floats(0, 1))
@settings(max_examples=40)
def test_reranking_happens_below_the_threshold_only(seed, threshold):
    items = list(range(seed, seed + 6))
    greedy = pipeline(TOY, has_reranker=False).decode(TableScorer(TOY, items), DecodingConfig())
    found = pipeline(TOY).search(TableScorer(TOY, items), DecodingConfig(rerank_threshold=threshold))
    for (best,), nbest in zip(greedy, found, strict=True):
        if math.exp(best.unit_log_p) >= threshold:
            assert nbest.hypotheses == (best,)
        else:
            assert len(nbest.hypotheses) == 1 or all(one.reranker_log_p is not None for one in nbest.hypotheses)


def test_a_beam_with_a_frame_that_is_too_long_is_not_reranked():
    config = DecodingConfig(rerank_threshold=1.0)
    for nbest in pipeline(TOY, max_length=1).search(TableScorer(TOY, range(5)), config):
        assert all(one.reranker_log_p is None for one in nbest.hypotheses)


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_numbers_change_nothing(poison):
    config = DecodingConfig(rerank_threshold=1.0)
    plain = pipeline(TOY, max_length=1).decode(TableScorer(TOY, range(5)), config, nbest=3)
    broken = pipeline(TOY).decode(TableScorer(TOY, range(5), poison=poison), config, nbest=3)
    assert [[one.skeleton for one in few][:1] for few in broken] == [[one.skeleton for one in few][:1] for few in plain]
    assert [few[0].log_p for few in broken] == [few[0].log_p for few in plain]


beams = st.lists(st.tuples(st.floats(1e-6, 1), st.floats(-20, 0), st.floats(-9, 0)), min_size=2, max_size=8)


def nbest_of(values):
    found = []
    for place, (p, log_q, span) in enumerate(values):
        skeleton = Node(f"IN:{place}", [Node("SL:X")])
        one = Hypothesis.of_parts(skeleton, (Span(place % 2, 3),), math.log(p / 8), (span,), passes=1)
        found.append(replace(one, reranker_log_p=log_q))
    return NBest(0.0, tuple(found))


@given(beams, st.floats(0, 1))
def test_the_beam_is_as_probable_as_before(values, weight):
    found = nbest_of(values)
    ranked = choose(found, DecodingConfig(reranker_weight=weight))
    totals = [np.logaddexp.reduce([one.log_p for one in few]) for few in (found.hypotheses, ranked)]
    assert totals[1] == pytest.approx(totals[0], abs=1e-6)
    assert {one.skeleton for one in ranked} == {one.skeleton for one in found.hypotheses}


@given(beams, st.floats(0, 1))
def test_two_hypotheses_part_by_the_interpolated_score(values, weight):
    found = nbest_of(values)
    ranked = {one.skeleton: one.log_p for one in choose(found, DecodingConfig(reranker_weight=weight))}
    first, *others = found.hypotheses

    def score(one):
        return (1 - weight) * one.log_p + weight * one.reranker_log_p

    for one in others:
        moved = ranked[one.skeleton] - ranked[first.skeleton]
        assert moved == pytest.approx(score(one) - score(first), abs=1e-6)


@given(beams, st.floats(0, 1))
def test_a_leaf_is_as_probable_as_all_skeletons_that_have_it(values, weight):
    found = nbest_of(values)
    ranked = choose(found, DecodingConfig(reranker_weight=weight))
    for span in {one.spans for one in ranked}:
        shared = {one.leaf_log_p for one in ranked if one.spans == span}
        assert len(shared) == 1, "the same leaf is as probable in every hypothesis"
    total = np.logaddexp.reduce([one.unit_log_p for one in found.hypotheses])
    assert all(one.leaf_log_p[0] <= total + 1e-9 for one in ranked)


@given(st.floats(-50, 0), st.floats(0.1, 10))
def test_confidences_are_probabilities(log_p, temperature):
    assert 0 <= confidence(log_p, temperature) <= 1


@given(
    st.builds(
        DecodingConfig,
        beam=st.integers(1, 100),
        rerank_threshold=st.floats(0, 1),
        prune_ratio=st.floats(0, 1),
        reranker_weight=st.floats(0, 1),
    )
)
def test_settings_survive_json(config):
    assert DecodingConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperatures": None}, "temperatures: expected settings by name, found None"),
        ({"temperatures": {"parse": 1.0}}, "temperatures.leaf: missing"),
        ({"temperatures": {"parse": 0, "leaf": 1}}, "temperatures.parse: expected a number from 0.001"),
        ({"rerank_threshold": math.nan}, "rerank_threshold: expected a number from 0 to 1, found nan"),
        ({"rerank_threshold": "0.5"}, "rerank_threshold: expected a number"),
        ({"reranker_weight": True}, "reranker_weight: expected a number"),
        ({"beam": 0}, "beam: expected a whole number from 1"),
        ({"sure": 0.5}, "sure: there is no such setting"),
    ],
)
def test_settings_that_make_no_sense_are_named(change, message):
    with pytest.raises(BundleError, match=message):
        DecodingConfig.from_json({**DecodingConfig().to_json(), **change})
