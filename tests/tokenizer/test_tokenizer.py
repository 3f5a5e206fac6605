import math

import numpy as np
import pytest
from brute_force import log_sum, scored_partitions
from hypothesis import given
from hypothesis import strategies as st
from strategies import corpora, tokenizer_configs, train_tokenizer, trees

from treepiece import Frame, Node, TokenizerConfig, TreePieceTokenizer, parse_brackets
from treepiece.errors import OptionError, TreeParseError, UnitError, UnknownLabelError
from treepiece.tokenizer.assembly import Order
from treepiece.tokenizer.folding import CONTINUATION


@given(corpora(), tokenizer_configs(), trees(12), st.sampled_from(Order))
def test_decode_undoes_encode(corpus, config, tree, order):
    tokenizer = train_tokenizer(corpus, config)
    for known in (*corpus.trees, tree):
        assert tokenizer.decode(tokenizer.encode(known, order=order), order=order) == known


@pytest.mark.slow
@given(corpora(), tokenizer_configs(), trees(9), st.sampled_from(Order), st.booleans(), st.floats(0, 3))
def test_decode_undoes_a_hundred_samples(corpus, config, tree, order, local, theta):
    tokenizer = train_tokenizer(corpus, config)
    rng = np.random.default_rng(0)
    for _ in range(100):
        unit_ids = tokenizer.sample(tree, rng, theta=theta, local=local, order=order)
        assert tokenizer.decode(unit_ids, order=order) == tree


@given(corpora(), tokenizer_configs(), trees(9), st.integers(1, 20))
def test_decode_undoes_the_n_best(corpus, config, tree, n):
    tokenizer = train_tokenizer(corpus, config)
    best = tokenizer.nbest(tree, n)
    assert best[0].unit_ids == tokenizer.encode(tree)
    assert all(tokenizer.decode(unit_ids) == tree for unit_ids, _ in best)
    assert len({unit_ids for unit_ids, _ in best}) == len(best)
    assert [log_p for _, log_p in best] == sorted((log_p for _, log_p in best), reverse=True)
    log_p = [unit.log_p for unit in tokenizer.units]
    assert all(sum(log_p[unit_id] for unit_id in unit_ids) == score for unit_ids, score in best)


@given(corpora(), tokenizer_configs(), trees(7))
def test_score_is_the_sum_over_all_partitions(corpus, config, tree):
    tokenizer = train_tokenizer(corpus, config)
    widths = tokenizer.units.widths.most
    labels = tokenizer.units.label_ids
    if all(len(node.children) <= widths[labels[node.label]] for node in tree.nodes()):
        units = dict(zip(tokenizer.units.shapes, tokenizer.units.log_p, strict=True))
        every = scored_partitions(tree, labels, units, with_placeholders=True)
        assert tokenizer.score(tree) == pytest.approx(log_sum([score for score, _ in every]))
    assert tokenizer.score(tree) >= tokenizer.nbest(tree, 1)[0].log_p - 1e-9


@given(corpora(), tokenizer_configs(), st.lists(trees(8), max_size=6))
def test_a_batch_is_its_trees_one_by_one(corpus, config, batch):
    tokenizer = train_tokenizer(corpus, config)
    assert tokenizer.encode_batch(batch) == [tokenizer.encode(tree) for tree in batch]


def test_the_example_of_the_paper():
    """Figure 1: "Remind me to send Susan an email about the meeting tonight", cut at its inner intent."""
    frame = Frame.from_brackets(
        "[IN:CREATE_REMINDER Remind [SL:PERSON_REMINDED me ] to [SL:TODO [IN:SEND_MESSAGE send "
        "[SL:RECIPIENT Susan ] an [SL:TYPE_CONTENT email ] about [SL:TOPIC the meeting ] ] ] [SL:DATE_TIME tonight ] ]"
    )
    outer = parse_brackets("[IN:CREATE_REMINDER [SL:PERSON_REMINDED ] [SL:TODO [IN:CALL ] ] [SL:DATE_TIME ] ]")
    inner = parse_brackets("[IN:SEND_MESSAGE [SL:RECIPIENT ] [SL:TYPE_CONTENT ] [SL:TOPIC ] ]")
    tokenizer = TreePieceTokenizer.train([(outer, 10), (inner, 20), (frame.skeleton, 1)], TokenizerConfig(merges=6))
    units = [tokenizer.units[unit_id] for unit_id in tokenizer.encode(frame.skeleton)]
    assert [str(unit) for unit in units] == [
        "[IN:CREATE_REMINDER [SL:PERSON_REMINDED ] [SL:TODO _ ] [SL:DATE_TIME ] ]",
        "[IN:SEND_MESSAGE [SL:RECIPIENT ] [SL:TYPE_CONTENT ] [SL:TOPIC ] ]",
    ]
    assert [unit.placeholders for unit in units] == [("SL:TODO",), ()]


def test_an_unknown_label_is_named(tokenizer):
    with pytest.raises(UnknownLabelError, match="label 'X' is not in the vocabulary") as caught:
        tokenizer.encode(Node("A", [Node("X")]))
    assert caught.value.label == "X"
    assert tokenizer.encode(Node("X"), missing_ok=True) is None
    assert tokenizer.encode_batch([Node("X"), Node("A")], missing_ok=True)[0] is None
    with pytest.raises(UnknownLabelError):
        tokenizer.encode(Node(CONTINUATION))


def test_bad_arguments_of_methods(tokenizer):
    with pytest.raises(OptionError, match="n must be a whole number, 1 or more, got 0"):
        tokenizer.nbest(Node("A"), 0)
    with pytest.raises(OptionError, match="theta must be a number from 0 to"):
        tokenizer.sample(Node("A"), np.random.default_rng(0), theta=math.nan)
    with pytest.raises(UnitError, match="there is no unit"):
        tokenizer.units.find("[A [A [A ] ] ]")
    with pytest.raises(UnitError, match="there is no unit"):
        tokenizer.units.find("[X ]")


def test_labels_of_any_kind(tmp_path):
    odd = Node("a b", [Node("["), Node("]"), Node("_"), Node("\ud800"), Node("école")])
    tokenizer = TreePieceTokenizer.train([odd])
    assert tokenizer.decode(tokenizer.encode(odd)) == odd
    assert str(tokenizer.units[tokenizer.encode(odd)[0]]) == '["a b" _ _ _ _ _ ]'
    tokenizer.save(tmp_path)
    loaded = TreePieceTokenizer.load(tmp_path)
    assert loaded.decode(loaded.encode(odd)) == odd


@pytest.mark.slow
def test_very_deep_and_very_wide_trees(tokenizer):
    deep = Node("A")
    for _ in range(10_000):
        deep = Node("B", [deep])
    wide = Node("A", [Node("B"), Node("C")] * 50_000)
    for tree in (deep, wide):
        for order in Order:
            assert tokenizer.decode(tokenizer.encode(tree, order=order), order=order) == tree
    learned = TreePieceTokenizer.train([deep], TokenizerConfig(merges=20))
    assert len(learned.encode(deep)) < 400
    assert learned.decode(learned.encode(deep)) == deep


def test_sharp_samples_are_the_best_and_flat_ones_are_not(tokenizer):
    tree = parse_brackets("[A [B ] [B ] [C ] ]", any_label=True)
    rng = np.random.default_rng(0)
    for local in (False, True):
        sharp = tokenizer.sample_batch([tree] * 20, rng, theta=1e6, local=local)
        assert set(sharp) == {tokenizer.encode(tree)}
        assert len(set(tokenizer.sample_batch([tree] * 50, rng, theta=0.0, local=local))) > 1


def test_common_mistakes_are_named(tokenizer):
    frame = Frame.from_brackets("[IN:A x ]")
    for call in (tokenizer.encode, tokenizer.draw, tokenizer.score, lambda x: TreePieceTokenizer.train([x])):
        with pytest.raises(TreeParseError, match="expected a Node, got Frame: for a frame, pass frame.skeleton"):
            call(frame)
    with pytest.raises(OptionError, match="order must be one of pre, level, got 'x'"):
        tokenizer.encode(Node("A"), order="x")
    with pytest.raises(OptionError, match="rng must be a numpy Generator"):
        tokenizer.sample(Node("A"), 0)
    with pytest.raises(OptionError, match="samples must be a whole number, from 0 to 1,000, got"):
        TokenizerConfig(samples=10**9)
    assert TokenizerConfig(merges=np.int64(5)) == TokenizerConfig(merges=5)
    assert repr(tokenizer) == f"<TreePieceTokenizer with {len(tokenizer.units)} units over 3 labels>"


def test_drawings_count_units_through(tokenizer):
    drawing = tokenizer.draw(Node("A", [Node("B")] * 9))
    numbers = [int(line.split()[-1]) for line in drawing.splitlines()]
    assert sorted(set(numbers)) == list(range(1, max(numbers) + 1))
    assert tokenizer.svg(Node("A", [Node("B", ["w"])])).count("<rect") == 2
