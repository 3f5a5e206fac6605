import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import outcome_of, outcomes

from treepiece.errors import DataError
from treepiece.evaluation.outcomes import Outcome
from treepiece.evaluation.scores import GroupScores, find_confusions, label_errors, score
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node, is_slot

some = st.lists(outcomes(), min_size=1, max_size=8)
EXACT = outcome_of("[IN:A x [SL:B y ] ]", "[IN:A x [SL:B y ] ]", passes=2, line=2)
SPANS = outcome_of("[IN:A x [SL:B y ] ]", "[IN:A [SL:B x y ] ]", "music", passes=3, line=3)
LABEL = outcome_of("[IN:A x [SL:B [IN:C [SL:D y ] ] ] ]", "[IN:A x [SL:E y ] ]", None, passes=4, line=4)
INVALID = outcome_of("[IN:A x y ]", "[SL:A x y ]", passes=5, line=5)


@given(some)
def test_gold_is_right_about_itself(rows):
    scores = score([replace(row, predicted=row.gold) for row in rows], seen=[row.gold.skeleton for row in rows])
    assert (scores.em, scores.em_s, scores.invalid, scores.confusions) == (1, 1, 0, ())
    assert scores.by_seen == {"seen": GroupScores(len(rows), 1.0, 1.0)}


@given(some)
def test_groups_add_up_to_the_whole(rows):
    scores = score(rows, seen={rows[0].gold.skeleton})
    assert scores.invalid == 0
    assert scores.em <= scores.em_s
    assert scores.em_low <= scores.em <= scores.em_high
    assert scores.em_s_low <= scores.em_s <= scores.em_s_high
    assert sum(part.rows for part in scores.by_domain.values()) == sum(row.domain is not None for row in rows)
    for parts in (scores.by_depth, scores.by_seen):
        assert sum(part.rows for part in parts.values()) == scores.rows == len(rows)
        assert sum(part.rows * part.em for part in parts.values()) == pytest.approx(scores.em * scores.rows)
        assert sum(part.rows * part.em_s for part in parts.values()) == pytest.approx(scores.em_s * scores.rows)


def test_a_worked_example():
    scores = score([EXACT, SPANS, LABEL, INVALID], seen=[EXACT.gold.skeleton])
    assert (scores.rows, scores.em, scores.em_s, scores.passes, scores.invalid) == (4, 0.25, 0.5, 3.5, 1)
    assert scores.by_domain == {"alarm": GroupScores(2, 0.5, 0.5), "music": GroupScores(1, 0.0, 1.0)}
    assert scores.by_depth == {
        "1": GroupScores(1, 0.0, 0.0),
        "2": GroupScores(2, 0.5, 1.0),
        "4": GroupScores(1, 0.0, 0.0),
    }
    assert scores.by_seen == {"seen": GroupScores(2, 0.5, 1.0), "unseen": GroupScores(2, 0.0, 0.0)}
    assert score([EXACT], seen=None).by_seen == {}
    value = json.loads(json.dumps(scores.to_json()))
    assert " ".join(value) == (
        "rows em em_s em_interval em_s_interval passes invalid by_domain by_depth by_seen confusions"
    )
    assert value["em_interval"] == [scores.em_low, scores.em_high]
    assert value["by_domain"]["music"] == {"rows": 1, "em": 0.0, "em_s": 1.0}
    assert {"gold": "IN:C", "predicted": None, "count": 1, "line": 4, "utterance": "x y"} in value["confusions"]


def test_depths_are_in_the_order_of_numbers():
    def chain(depth):
        node = Node("IN:A")
        for number in range(depth - 1):
            node = Node("IN:A" if number % 2 else "SL:A", [node])
        return Frame.from_tree(node)

    rows = [Outcome(chain(depth), chain(depth), None, 1) for depth in (11, 9, 3)]
    assert list(score(rows, None).by_depth) == ["3", "9", "11"]


def test_nothing_cannot_be_scored():
    with pytest.raises(DataError, match="there are no rows to score"):
        score([], None)


labels = st.lists(st.sampled_from(["IN:A", "IN:B", "SL:A", "SL:B"]), max_size=6)


def fewest_errors(gold, predicted):
    """The definition: the last labels are a pair, or one of them has no partner."""
    if not gold or not predicted:
        return len(gold) + len(predicted)
    ways = [fewest_errors(gold[:-1], predicted) + 1, fewest_errors(gold, predicted[:-1]) + 1]
    if is_slot(gold[-1]) == is_slot(predicted[-1]):
        ways.append(fewest_errors(gold[:-1], predicted[:-1]) + (gold[-1] != predicted[-1]))
    return min(ways)


@given(labels, labels)
def test_label_errors_are_the_fewest_that_explain_the_difference(gold, predicted):
    errors = label_errors(gold, predicted)
    assert len(errors) == fewest_errors(gold, predicted)
    lost, found = Counter(gold), Counter(predicted)
    lost.subtract(label for label, _ in errors if label)
    found.subtract(label for _, label in errors if label)
    assert +lost == +found
    assert label_errors(gold, gold) == []


def test_confusions_are_sorted_and_show_their_first_row():
    rows = [
        outcome_of("[IN:A x [SL:C y ] ]", "[IN:B x [SL:D y ] ]", line=1),
        outcome_of("[IN:A x ]", "[IN:A [SL:D x ] ]", line=2),
        outcome_of("[IN:A [SL:C z ] ]", "[IN:A [SL:D z ] ]", line=3),
    ]
    found = [(one.gold, one.predicted, one.count, one.line) for one in find_confusions(rows)]
    assert found == [("SL:C", "SL:D", 2, 1), (None, "SL:D", 1, 2), ("IN:A", "IN:B", 1, 1)]
    assert len(find_confusions(rows, most=1)) == 1
