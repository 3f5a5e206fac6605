import copy
import pickle

import pytest
from hypothesis import given
from strategies import trees

from treepiece.trees.node import Kind, Node, build_tree


def deep_tree(depth=10_000):
    tree = Node("SL:LEAF", ["word"])
    for level in range(depth - 1):
        tree = Node("IN:X" if level % 2 == 0 else "SL:X", [tree])
    return tree


@given(trees(9))
def test_events_rebuild_the_tree(tree):
    rebuilt = build_tree(tree.events())
    assert rebuilt == tree
    assert hash(rebuilt) == hash(tree)
    assert rebuilt is not tree


@given(trees(6), trees(6))
def test_equal_means_the_same_events(first, second):
    assert (first == second) == (list(first.events()) == list(second.events()))


@given(trees(9))
def test_counts(tree):
    assert tree.n_nodes == sum(kind is Kind.OPEN for kind, _ in tree.events()) == len(list(tree.nodes()))
    assert 1 <= tree.depth <= tree.n_nodes


def test_a_word_is_not_a_node():
    assert Node("A", ["B"]) != Node("A", [Node("B")])
    assert Node("A") != "A"
    assert Node("A", [Node("B")]).is_skeleton
    assert not Node("A", [Node("B", ["w"])]).is_skeleton


def test_a_node_cannot_be_changed():
    node = Node("A")
    with pytest.raises(AttributeError, match="cannot be changed"):
        node.label = "B"
    with pytest.raises(AttributeError, match="cannot be changed"):
        del node.label


@pytest.mark.parametrize(("label", "children"), [("", ()), (3, ()), ("A", [3]), ("A", [None]), ("A", "word")])
def test_what_is_no_node(label, children):
    with pytest.raises(TypeError, match="got|not the text"):
        Node(label, children)


def test_events_that_end_early():
    with pytest.raises(ValueError, match="end before the root closes"):
        build_tree([(Kind.OPEN, "A")])


@pytest.mark.slow
@pytest.mark.parametrize("tree", [deep_tree(), Node("A", [Node("B")] * 100_000)], ids=["deep", "wide"])
def test_size_is_no_limit(tree):
    twin = build_tree(tree.events())
    assert twin == tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert copy.deepcopy(tree) == tree
    assert repr(tree).startswith("Node(")
    assert tree.depth in (2, 10_000)
    assert Node("X", [tree]) != Node("X", [Node("X", [tree])])
