from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import corpora, tokenizer_configs, train_tokenizer, trees

from treepiece import parse_brackets
from treepiece.errors import UnitError
from treepiece.tokenizer.assembly import NestSymbols, Order
from treepiece.tokenizer.folding import CONTINUATION


@pytest.mark.slow
@given(corpora(), tokenizer_configs(), st.lists(st.integers(-2, 40), max_size=12), st.sampled_from(Order))
@settings(max_examples=200)
def test_any_ids_give_a_tree_or_the_error(corpus, config, unit_ids, order):
    tokenizer = train_tokenizer(corpus, config)
    try:
        tree = tokenizer.decode(unit_ids, order=order)
    except UnitError:
        return
    assert tokenizer.decode(tokenizer.encode(tree)) == tree
    assert all(node.label in "ABC" for node in tree.nodes())


def read_nest(numbers, units, symbols):
    """Yield the units of a nest: for each placeholder of its first unit it has a nest in brackets."""
    unit_id = next(numbers)
    yield unit_id
    for _ in range(units.n_placeholders[unit_id]):
        assert (next(numbers), next(numbers)) == (symbols.placeholder, symbols.opening)
        yield from read_nest(numbers, units, symbols)
        assert next(numbers) == symbols.closing


@given(corpora(), tokenizer_configs(), trees(9))
def test_nests_are_read_back(corpus, config, tree):
    tokenizer = train_tokenizer(corpus, config)
    unit_ids = tokenizer.encode(tree)
    numbers = iter(tokenizer.serialize(unit_ids))
    assert tuple(read_nest(numbers, tokenizer.units, NestSymbols.after(len(tokenizer.units)))) == unit_ids
    assert next(numbers, None) is None


@given(corpora(), tokenizer_configs(), trees(9), st.sampled_from(Order))
def test_places_name_the_unit_of_each_node(corpus, config, tree, order):
    tokenizer = train_tokenizer(corpus, config)
    unit_ids = tokenizer.encode(tree, order=order)
    places = Counter(tokenizer.places(unit_ids, order=order))
    assert places.total() == tree.n_nodes
    for place, unit_id in enumerate(unit_ids):
        labels = [node.label for node in tokenizer.units[unit_id].tree.nodes() if node.label != CONTINUATION]
        assert places[place] == len(labels)


def test_orders_differ_where_the_tree_branches_below(tokenizer):
    tree = parse_brackets("[A [B [C ] ] [B ] [A [A ] ] ]", any_label=True)
    pre, level = (tokenizer.encode(tree, order=order) for order in Order)
    assert sorted(pre) == sorted(level)
    assert pre != level


@pytest.mark.parametrize(
    ("unit_ids", "message"),
    [
        ([], "too few units: 1 placeholder is still open after 0 units"),
        ([99], "unit id 99 at index 0 is out of range: ids go from 0 to"),
        ([-1], "unit id -1 at index 0 is out of range"),
        (["0"], "the unit id at index 0 must be a whole number, got '0'"),
        ([True], "must be a whole number, got True"),
        ([0, 0], "units left over: the tree is complete after 1 of 2 units; remove unit 0 at index 1"),
    ],
)
def test_ids_that_make_no_tree(tokenizer, unit_ids, message):
    with pytest.raises(UnitError) as caught:
        tokenizer.decode(unit_ids)
    assert message in str(caught.value)
