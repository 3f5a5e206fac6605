from itertools import product

import pytest

from treepiece import Node, TokenizerConfig, TreePieceTokenizer
from treepiece.errors import UnitError
from treepiece.tokenizer.folding import CONTINUATION
from treepiece.tokenizer.learning import Expansion


def test_a_node_wider_than_any_seen_is_folded_and_unfolded(tokenizer):
    wide = Node("C", [Node("A", [Node("B")] * 11)] * 7)  # C was only ever a leaf
    unit_ids = tokenizer.encode(wide)
    assert any(CONTINUATION in str(tokenizer.units[unit_id]) for unit_id in unit_ids)
    assert tokenizer.decode(unit_ids) == wide


@pytest.mark.parametrize("expansion", Expansion)
def test_wide_nodes_are_folded_in_training_too(expansion):
    wide = Node("A", [Node("B")] * 200)
    config = TokenizerConfig(merges=5, expansion=expansion, samples=2)
    tokenizer = TreePieceTokenizer.train([wide, Node("C", [Node("B")])], config)
    assert max(tokenizer.units.widths.most) <= 64
    assert tokenizer.decode(tokenizer.encode(wide)) == wide
    assert (tokenizer.report.n_labels, tokenizer.report.base_units) == (3, 8)
    for first, second in product(range(len(tokenizer.units)), repeat=2):
        placeholders = tokenizer.units.n_placeholders[first]
        unit_ids = [first, *[second] * placeholders] if tokenizer.units.n_placeholders[second] == 0 else [first]
        try:
            tree = tokenizer.decode(unit_ids)
        except UnitError:
            continue
        assert tree.label != CONTINUATION
        assert tree.n_nodes == sum(
            node.label != CONTINUATION for unit_id in unit_ids for node in tokenizer.units[unit_id].tree.nodes()
        )
