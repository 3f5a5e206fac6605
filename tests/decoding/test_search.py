import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treepiece import TokenizerConfig, TreePieceTokenizer, parse_brackets
from treepiece.data.toy import toy_frames
from treepiece.decoding.search import UnitGrammar, beam_search, label_pairs, log_softmax
from treepiece.errors import OptionError, UnitError
from treepiece.tokenizer.assembly import Order, assemble
from treepiece.tokenizer.vocabulary import Vocabulary

SKELETONS = [frame.skeleton for frame in toy_frames(300)]
PAIRS = label_pairs(SKELETONS)
TOY = UnitGrammar(TreePieceTokenizer.train(SKELETONS, TokenizerConfig(merges=40)).units, PAIRS)


def noise(seed, scale=3.0):
    rng = np.random.default_rng(seed)
    return lambda rows: rng.normal(size=(len(rows), len(TOY.vocabulary))) * scale


def search_units(n, score, grammar, *, beam=1):
    return beam_search([grammar.start()] * n, score, grammar, beam=beam)


def skeleton_of(partial):
    return assemble(partial.unit_ids, TOY.vocabulary, Order.PRE)


def is_valid(tree):
    return (None, tree.label) in PAIRS and label_pairs([tree]) <= PAIRS


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 4), st.integers(1, 40), st.floats(0, 50))
@settings(max_examples=60)
def test_random_scores_give_valid_trees_within_the_budget(seed, n, beam, budget, scale):
    grammar = UnitGrammar(TOY.vocabulary, PAIRS, budget=budget)
    for candidates in search_units(n, noise(seed, scale), grammar, beam=beam):
        assert 1 <= len(candidates) <= beam
        assert len({candidate.unit_ids for candidate in candidates}) == len(candidates)
        for candidate in candidates:
            assert is_valid(skeleton_of(candidate))
            assert skeleton_of(candidate).n_nodes <= budget
            assert candidate.log_p <= 1e-9
        assert [c.log_p for c in candidates] == sorted((c.log_p for c in candidates), reverse=True)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308, -1e308])
def test_broken_scores_give_valid_trees(value):
    score = lambda rows: np.full((len(rows), len(TOY.vocabulary)), value)  # noqa: E731
    for candidates in search_units(3, score, TOY, beam=3):
        assert all(is_valid(skeleton_of(candidate)) for candidate in candidates)


SMALL_TREES = [parse_brackets(text, any_label=True) for text in ("[A [B ] [B ] ]", "[A [B [A ] ] ]", "[A ]")]
SMALL_UNITS = TreePieceTokenizer.train(SMALL_TREES * 3, TokenizerConfig(merges=3)).units
SMALL = UnitGrammar(SMALL_UNITS, label_pairs(SMALL_TREES), budget=6)


def table_scores(rows):
    """Scores that depend on the utterance and the units so far only."""
    return np.array(
        [
            np.random.default_rng([item, *partial.unit_ids]).normal(size=len(SMALL.vocabulary)) * 2
            for item, partial in rows
        ]
    )


def all_trees(item):
    """Return every complete sequence within the budget with its log-probability, by enumeration."""
    done, todo = [], [SMALL.start()]
    while todo:
        partial = todo.pop()
        if partial.is_complete:
            done.append(partial)
            continue
        allowed = SMALL.allowed(partial)
        log_p = log_softmax(table_scores([(item, partial)]), allowed[None])[0]
        todo += [SMALL.extend(partial, unit, float(log_p[unit])) for unit in np.flatnonzero(allowed)]
    return done


@pytest.mark.parametrize("item", range(4))
def test_a_wide_beam_finds_every_sequence_with_its_probability(item):
    every = all_trees(item)
    assert sum(math.exp(partial.log_p) for partial in every) == pytest.approx(1.0)
    score = lambda rows: table_scores([(item, partial) for _, partial in rows])  # noqa: E731
    (found,) = search_units(1, score, SMALL, beam=len(every))
    wanted = {partial.unit_ids: partial.log_p for partial in every}
    assert {partial.unit_ids: partial.log_p for partial in found} == pytest.approx(wanted)


@pytest.mark.parametrize("item", range(4))
@pytest.mark.parametrize("prune_ratio", [0.01, 0.1, 0.5, 1.0])
def test_improbable_sequences_are_pruned_and_no_others(item, prune_ratio):
    every = all_trees(item)
    least = math.log(prune_ratio) + max(partial.log_p for partial in every)
    asked = []

    def score(rows):
        asked.extend(partial for _, partial in rows)
        return table_scores([(item, partial) for _, partial in rows])

    (found,) = beam_search([SMALL.start()], score, SMALL, beam=len(every), prune_ratio=prune_ratio)
    assert {p.unit_ids for p in found} == {p.unit_ids for p in every if p.log_p >= least}
    if prune_ratio == 1.0:  # what cannot win any more is not written on either
        assert len(asked) < len({p.unit_ids[:n] for p in every for n in range(len(p.unit_ids))})


def test_utterances_do_not_influence_each_other():
    together = search_units(5, table_scores, SMALL, beam=2)
    for item in range(5):
        score = lambda rows, item=item: table_scores([(item, partial) for _, partial in rows])  # noqa: E731
        assert search_units(1, score, SMALL, beam=2)[0] == together[item]


def test_greedy_takes_the_best_unit_at_each_step():
    (found,) = search_units(1, table_scores, SMALL)
    partial = SMALL.start()
    while not partial.is_complete:
        row = np.where(SMALL.allowed(partial), table_scores([(0, partial)])[0], -np.inf)
        partial = SMALL.extend(partial, int(row.argmax()), 0.0)
    assert found[0].unit_ids == partial.unit_ids


def test_bad_options():
    with pytest.raises(OptionError, match="beam must be a whole number, 1 or more, got 0"):
        search_units(1, table_scores, SMALL, beam=0)
    with pytest.raises(OptionError, match="budget must be a whole number"):
        UnitGrammar(SMALL_UNITS, label_pairs(SMALL_TREES), budget=2.5)
    units = TreePieceTokenizer.train([parse_brackets("[A [B ] ]", any_label=True)]).units
    with pytest.raises(UnitError, match="no tree can be completed at the root"):
        UnitGrammar(units, [("A", "B")])
    with pytest.raises(UnitError, match="no tree can be completed below 'A'"):
        UnitGrammar(units, [(None, "A")])
    shapes = tuple(shape for shape in units.shapes if len(shape) > 2 or shape[0] != units.label_ids["A"])
    without_bare_root = Vocabulary(units.labels, shapes, (0.0,) * len(shapes))
    with pytest.raises(OptionError, match="a budget of 1 nodes is too small: a tree needs 2"):
        UnitGrammar(without_bare_root, [(None, "A"), ("A", "B")], budget=1)
