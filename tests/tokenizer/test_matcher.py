import math

import numpy as np
import pytest
from lattice_cases import LABELS

from treepiece import parse_brackets
from treepiece.tokenizer.corpus import Forest
from treepiece.tokenizer.matcher import Matcher


def test_a_wide_node_with_equal_children_counts_every_way():
    """[A [B ] [B ] ] lies on an A with 40 Bs in 40 * 39 / 2 ways, and [A [B ] ] in 40."""
    tree = parse_brackets("[A " + "[B ] " * 40 + "]", any_label=True)
    shapes = ((0, -1), (1, -1), (0, 1, -1, -1), (0, 1, -1, 1, -1, -1))
    forest = Forest(LABELS)
    number = forest.add(tree)
    lattice, nodes = Matcher(shapes, cut_anywhere=True).match(forest)
    inside = lattice.evaluate(np.zeros(len(shapes)), np.logaddexp).node[nodes[number]]
    assert math.exp(inside) == pytest.approx(1 + 40 + 780)
