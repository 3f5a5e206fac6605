import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from brute_force import log_sum, scored_partitions
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import corpora, trees

from treepiece import Frame, Node, TokenizerConfig, TreePieceTokenizer, parse_brackets
from treepiece.errors import OptionError, TreeParseError, UnitError, UnknownLabelError
from treepiece.tokenizer.assembly import Order
from treepiece.tokenizer.config import Expansion
from treepiece.tokenizer.em import EmMethod
from treepiece.tokenizer.folding import CONTINUATION
from treepiece.tokenizer.nests import NestSymbols, read_nests

configs = st.builds(
    TokenizerConfig,
    merges=st.integers(0, 8),
    em=st.sampled_from(EmMethod),
    em_iterations=st.just(3),
    min_count=st.integers(1, 3),
    samples=st.integers(1, 3),
)
ABC = [Node(label) for label in "ABC"]


def train(corpus, config):
    """Train on a corpus and on each label alone, so that all labels are known."""
    return TreePieceTokenizer.train([*zip(corpus.trees, corpus.counts, strict=True), *ABC], config)


@given(corpora(), configs, trees(12), st.sampled_from(Order))
def test_decode_undoes_encode(corpus, config, tree, order):
    tokenizer = train(corpus, config)
    for known in (*corpus.trees, tree):
        assert tokenizer.decode(tokenizer.encode(known, order=order), order=order) == known


@given(corpora(), configs, trees(9), st.sampled_from(Order), st.booleans(), st.floats(0, 3))
def test_decode_undoes_a_hundred_samples(corpus, config, tree, order, local, theta):
    tokenizer = train(corpus, config)
    rng = np.random.default_rng(0)
    for _ in range(100):
        unit_ids = tokenizer.sample(tree, rng, theta=theta, local=local, order=order)
        assert tokenizer.decode(unit_ids, order=order) == tree


@given(corpora(), configs, trees(9), st.integers(1, 20))
def test_decode_undoes_the_n_best(corpus, config, tree, n):
    tokenizer = train(corpus, config)
    best = tokenizer.nbest(tree, n)
    assert best[0].unit_ids == tokenizer.encode(tree)
    assert all(tokenizer.decode(unit_ids) == tree for unit_ids, _ in best)
    assert len({unit_ids for unit_ids, _ in best}) == len(best)
    assert [log_p for _, log_p in best] == sorted((log_p for _, log_p in best), reverse=True)
    log_p = [unit.log_p for unit in tokenizer.units]
    assert all(sum(log_p[unit_id] for unit_id in unit_ids) == score for unit_ids, score in best)


@given(corpora(), configs, trees(7))
def test_score_is_the_sum_over_all_partitions(corpus, config, tree):
    tokenizer = train(corpus, config)
    widths = tokenizer.units.widths.most
    labels = tokenizer.units.label_ids
    if all(len(node.children) <= widths[labels[node.label]] for node in tree.nodes()):
        units = dict(zip(tokenizer.units.shapes, tokenizer.units.log_p, strict=True))
        every = scored_partitions(tree, labels, units, with_placeholders=True)
        assert tokenizer.score(tree) == pytest.approx(log_sum([score for score, _ in every]))
    assert tokenizer.score(tree) >= tokenizer.nbest(tree, 1)[0].log_p - 1e-9


@given(corpora(), configs, st.lists(st.integers(-2, 40), max_size=12), st.sampled_from(Order))
@settings(max_examples=200)
def test_any_ids_give_a_tree_or_the_error(corpus, config, unit_ids, order):
    tokenizer = train(corpus, config)
    try:
        tree = tokenizer.decode(unit_ids, order=order)
    except UnitError:
        return
    assert tokenizer.decode(tokenizer.encode(tree)) == tree
    assert all(node.label in "ABC" for node in tree.nodes())


@given(corpora(), configs, trees(9))
def test_the_papers_expansion_encodes_or_says_that_it_cannot(corpus, config, tree):
    config = TokenizerConfig(config.merges, config.em, 3, expansion=Expansion.PAPER, samples=config.samples)
    tokenizer = train(corpus, config)
    try:
        assert tokenizer.decode(tokenizer.encode(tree)) == tree
    except UnitError as error:
        assert "default expansion" in str(error)
        assert tokenizer.encode(tree, missing_ok=True) is None
    for known in corpus.trees:
        assert tokenizer.decode(tokenizer.encode(known)) == known


@given(corpora())
def test_without_samples_the_papers_expansion_encodes_what_it_saw(corpus):
    tokenizer = train(corpus, TokenizerConfig(5, expansion=Expansion.PAPER, samples=0))
    for known in corpus.trees:
        assert tokenizer.decode(tokenizer.encode(known)) == known


@given(corpora(), configs)
def test_ids_and_units_are_one_to_one(corpus, config):
    tokenizer = train(corpus, config)
    for unit_id, unit in enumerate(tokenizer.units):
        assert unit.id == unit_id
        assert tokenizer.units.find(unit.tree) == tokenizer.units.find(str(unit)) == unit_id
        assert len(unit.placeholders) == str(unit).split().count("_") == tokenizer.units.n_holes[unit_id]
    assert [unit.log_p for unit in tokenizer.units] == sorted((u.log_p for u in tokenizer.units), reverse=True)
    assert sum(unit.probability for unit in tokenizer.units) == pytest.approx(1.0)


@given(corpora(), configs, st.lists(trees(8), max_size=6))
def test_a_batch_is_its_trees_one_by_one(corpus, config, batch):
    tokenizer = train(corpus, config)
    assert tokenizer.encode_batch(batch) == [tokenizer.encode(tree) for tree in batch]


@given(corpora(), configs)
def test_counts_and_repetition_are_the_same(corpus, config):
    repeated = [tree for tree, count in zip(corpus.trees, corpus.counts, strict=True) for _ in range(count)]
    first = TreePieceTokenizer.train(zip(corpus.trees, corpus.counts, strict=True), config)
    second = TreePieceTokenizer.train(repeated, config)
    assert first.units == second.units
    assert first.report == second.report


@given(corpora(), configs)
def test_the_order_of_the_corpus_does_not_matter_to_hard_em(corpus, config):
    config = TokenizerConfig(config.merges, min_count=config.min_count)
    pairs = list(zip(corpus.trees, corpus.counts, strict=True))
    assert TreePieceTokenizer.train(pairs, config).units == TreePieceTokenizer.train(pairs[::-1], config).units


@given(corpora(), configs, trees(9))
def test_nests_are_read_back(corpus, config, tree):
    tokenizer = train(corpus, config)
    unit_ids = tokenizer.encode(tree)
    numbers = tokenizer.serialize(unit_ids)
    symbols = NestSymbols.after(len(tokenizer.units))
    n_joins = len(unit_ids) - 1
    counted = Counter(numbers)
    assert counted[symbols.placeholder] == counted[symbols.opening] == counted[symbols.closing] == n_joins
    assert tuple(read_nests(numbers, tokenizer.units)) == unit_ids


@given(corpora(), configs, trees(9), st.sampled_from(Order))
def test_places_name_the_unit_of_each_node(corpus, config, tree, order):
    tokenizer = train(corpus, config)
    unit_ids = tokenizer.encode(tree, order=order)
    places = Counter(tokenizer.places(unit_ids, order=order))
    assert places.total() == tree.n_nodes
    for place, unit_id in enumerate(unit_ids):
        labels = [node.label for node in tokenizer.units[unit_id].tree.nodes() if node.label != CONTINUATION]
        assert places[place] == len(labels)


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


@pytest.fixture(scope="module")
def tokenizer():
    wide = parse_brackets("[A [B ] [B ] [C ] ]", any_label=True)
    return TreePieceTokenizer.train([(wide, 5), Node("A"), Node("B", [Node("C")])])


def test_orders_differ_where_the_tree_branches_below(tokenizer):
    tree = parse_brackets("[A [B [C ] ] [B ] [A [A ] ] ]", any_label=True)
    pre, level = (tokenizer.encode(tree, order=order) for order in Order)
    assert sorted(pre) == sorted(level)
    assert pre != level


def test_a_node_wider_than_any_seen_is_folded_and_unfolded(tokenizer):
    wide = Node("C", [Node("A", [Node("B")] * 11)] * 7)  # C was only ever a leaf
    unit_ids = tokenizer.encode(wide)
    assert any(CONTINUATION in str(tokenizer.units[unit_id]) for unit_id in unit_ids)
    assert tokenizer.decode(unit_ids) == wide


@pytest.mark.parametrize(
    ("unit_ids", "message"),
    [
        ([], "too few units: 1 placeholders are still open after 0 units"),
        ([99], "unit id 99 at place 0 is out of range: ids go from 0 to"),
        ([-1], "unit id -1 at place 0 is out of range"),
        (["0"], "the unit id at place 0 must be a whole number, got '0'"),
        ([True], "must be a whole number, got True"),
        ([0, 0], "units left over: the tree is complete after 1 of 2 units; remove unit 0 at place 1"),
    ],
)
def test_ids_that_make_no_tree(tokenizer, unit_ids, message):
    with pytest.raises(UnitError) as caught:
        tokenizer.decode(unit_ids)
    assert message in str(caught.value)


def test_an_unknown_label_is_named(tokenizer):
    with pytest.raises(UnknownLabelError, match="label 'X' is not in the vocabulary") as caught:
        tokenizer.encode(Node("A", [Node("X")]))
    assert caught.value.label == "X"
    assert tokenizer.encode(Node("X"), missing_ok=True) is None
    assert tokenizer.encode_batch([Node("X"), Node("A")], missing_ok=True)[0] is None
    with pytest.raises(UnknownLabelError):
        tokenizer.encode(Node(CONTINUATION))


def test_words_and_empty_corpora_are_refused(tokenizer):
    with pytest.raises(TreeParseError, match=r"found the word 'hello': use Frame.from_tree\(tree\).skeleton"):
        tokenizer.encode(Node("A", ["hello"]))
    with pytest.raises(TreeParseError, match="found the word 'hello'"):
        TreePieceTokenizer.train([Node("A", ["hello"])])
    with pytest.raises(TreeParseError, match="is reserved: rename it"):
        TreePieceTokenizer.train([Node(CONTINUATION)])
    with pytest.raises(OptionError, match="there are no trees to learn from"):
        TreePieceTokenizer.train([])
    with pytest.raises(OptionError, match="a whole number of times, from 1 to .*, got 0"):
        TreePieceTokenizer.train([(Node("A"), 0)])


@pytest.mark.parametrize(
    "bad",
    [
        {"merges": -1},
        {"merges": 1.5},
        {"em": "best"},
        {"em_iterations": 0},
        {"em_epsilon": math.nan},
        {"expansion": "none"},
        {"samples": -1},
        {"theta": math.inf},
        {"theta": -0.1},
        {"min_count": 0},
        {"seed": -1},
    ],
)
def test_bad_options_name_the_option_and_the_value(bad):
    name, value = next(iter(bad.items()))
    with pytest.raises(OptionError, match=name.removeprefix("em_")) as caught:
        TokenizerConfig(**bad)
    assert repr(value) in str(caught.value)


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


@pytest.mark.parametrize("expansion", Expansion)
def test_wide_nodes_are_folded_in_training_too(expansion):
    wide = Node("A", [Node("B")] * 200)
    config = TokenizerConfig(merges=5, expansion=expansion, samples=2)
    tokenizer = TreePieceTokenizer.train([wide, Node("C", [Node("B")])], config)
    assert max(tokenizer.units.widths.most) <= 64
    assert tokenizer.decode(tokenizer.encode(wide)) == wide
    assert (tokenizer.report.n_labels, tokenizer.report.base_units) == (3, 8)
    for first, second in product(range(len(tokenizer.units)), repeat=2):
        holes = tokenizer.units.n_holes[first]
        unit_ids = [first, *[second] * holes] if tokenizer.units.n_holes[second] == 0 else [first]
        try:
            tree = tokenizer.decode(unit_ids)
        except UnitError:
            continue
        assert tree.label != CONTINUATION
        assert tree.n_nodes == sum(
            node.label != CONTINUATION for unit_id in unit_ids for node in tokenizer.units[unit_id].tree.nodes()
        )


def test_sharp_samples_are_the_best_and_flat_ones_are_not(tokenizer):
    tree = parse_brackets("[A [B ] [B ] [C ] ]", any_label=True)
    rng = np.random.default_rng(0)
    for local in (False, True):
        sharp = tokenizer.sample_batch([tree] * 20, rng, theta=1e6, local=local)
        assert set(sharp) == {tokenizer.encode(tree)}
        assert len(set(tokenizer.sample_batch([tree] * 50, rng, theta=0.0, local=local))) > 1


def test_counters_and_numpy_numbers_are_counts():
    tree = parse_brackets("[A [B ] ]", any_label=True)
    counted = TreePieceTokenizer.train(Counter({tree: 5, Node("A"): 1}))
    assert counted.units == TreePieceTokenizer.train([(tree, np.int64(5)), Node("A")]).units
    assert counted.units != TreePieceTokenizer.train([tree, Node("A")]).units
    assert counted.decode(np.array(counted.encode(tree))) == tree
    with pytest.raises(OptionError, match="from 1 to"):
        TreePieceTokenizer.train([(tree, 10**18)])


def test_common_mistakes_are_named(tokenizer):
    frame = Frame.from_brackets("[IN:A x ]")
    for call in (tokenizer.encode, tokenizer.draw, tokenizer.score, lambda x: TreePieceTokenizer.train([x])):
        with pytest.raises(TreeParseError, match="expected a Node, got Frame: of a frame, use frame.skeleton"):
            call(frame)
    with pytest.raises(OptionError, match="order must be one of pre, level, got 'x'"):
        tokenizer.encode(Node("A"), order="x")
    with pytest.raises(OptionError, match="rng must be a generator of numpy"):
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


def test_slices_of_units(tokenizer):
    assert [unit.id for unit in tokenizer.units[1:3]] == [1, 2]
    assert tokenizer.units[-1].id == len(tokenizer.units) - 1
