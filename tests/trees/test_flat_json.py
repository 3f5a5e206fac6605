import json

import pytest
from hypothesis import given
from strategies import top_trees

from treepiece.errors import TreeParseError
from treepiece.trees.flat_json import tree_from_rows, tree_to_rows
from treepiece.trees.node import Node


@given(top_trees)
def test_rows_are_read_back(tree):
    assert tree_from_rows(json.loads(json.dumps(tree_to_rows(tree)))) == tree


def test_depth_is_no_limit():
    tree = Node("A")
    for _ in range(10_000):
        tree = Node("A", [tree])
    assert tree_from_rows(json.loads(json.dumps(tree_to_rows(tree)))) == tree


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "a non-empty list of nodes, got []"),
        ("A", "a non-empty list of nodes, got 'A'"),
        (None, "a non-empty list of nodes, got None"),
        ([{"word": "w"}], "node 0: the first row must be the root"),
        ([{"label": "A", "parent": 0}], "node 0: the first row must be the root"),
        ([{"label": ""}], "node 0: expected {'label' or 'word': text, 'parent': number}"),
        ([{"label": "A", "word": "w"}], "node 0: expected"),
        ([{"label": "A"}, 3], "node 1: expected"),
        ([{"label": "A"}, {"label": "B"}], "node 1: 'parent' must be the index of an earlier node, got None"),
        ([{"label": "A"}, {"label": "B", "parent": 1}], "node 1: 'parent' must be the index of an earlier node, got 1"),
        ([{"label": "A"}, {"label": "B", "parent": True}], "node 1: 'parent' must be"),
        (
            [{"label": "A"}, {"word": "w", "parent": 0}, {"label": "B", "parent": 1}],
            "node 2: its parent, row 1, is a word",
        ),
    ],
)
def test_bad_rows(rows, message):
    with pytest.raises(TreeParseError) as caught:
        tree_from_rows(rows)
    assert message in str(caught.value)
