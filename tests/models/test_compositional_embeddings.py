"""What units share is read off their trees, and learned together."""

import math
from collections import Counter

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import given
from strategies import corpora

from treepiece import Node, TokenizerConfig, TreePieceTokenizer, parse_brackets
from treepiece.data.toy import toy_frames
from treepiece.definition import DecoderConfig, Extensions
from treepiece.models.treepiece_model import UnitDecoder
from treepiece.models.unit_embeddings import N_SIZES, CompositionalEmbedding, part_names, unit_parts

TOY = TreePieceTokenizer.train([frame.skeleton for frame in toy_frames(300)], TokenizerConfig(merges=50)).units


def read(tree, role="root"):
    """Yield the parts of a unit but for its size, the brute-force way."""
    yield f"{role} {tree.label}"
    left = "|"
    for child in tree.children:
        name = child.label if isinstance(child, Node) else "_"
        yield from (f"{tree.label} > {name}", f"{left} ~ {name}")
        left = name
        if isinstance(child, Node):
            yield from read(child, "inner" if child.children else "leaf")


def parts_of(unit_id):
    """Return the numbers of the parts that a toy unit has."""
    return sorted({part_names(TOY).index(name) for name in unit_parts(TOY.shapes[unit_id], TOY.labels)})


def size(tree):
    n_nodes = sum(1 for _ in tree.nodes())
    return [n_nodes <= most for most in (1, 3, 7, 15, math.inf)].index(True)


def check(vocabulary):
    names = part_names(vocabulary)
    assert len(set(names)) == len(names)
    compositional = CompositionalEmbedding(vocabulary, 4)
    for unit, shape, vector in zip(vocabulary, vocabulary.shapes, compositional(), strict=True):
        expected = Counter([*read(unit.tree), f"size {size(unit.tree)}"])
        assert Counter(unit_parts(shape, vocabulary.labels)) == expected
        rows = torch.stack([count * compositional.table[names.index(name)] for name, count in expected.items()])
        torch.testing.assert_close(vector, rows.sum(0))


def test_the_parts_of_the_toy_units_are_those_of_their_trees():
    check(TOY)


@given(corpora())
def test_parts_are_those_of_the_trees(corpus):
    check(TreePieceTokenizer.train(zip(corpus.trees, corpus.counts, strict=True), TokenizerConfig(merges=5)).units)


def test_every_size_has_its_part():
    sizes = {1: 0, 2: 1, 3: 1, 4: 2, 7: 2, 8: 3, 15: 3, 16: 4, 40: 4}
    assert max(sizes.values()) == N_SIZES - 1
    for n_nodes, expected in sizes.items():
        *_, last = unit_parts((0,) * n_nodes + (-1,) * n_nodes, "A")
        assert last == f"size {expected}"


def test_units_that_differ_in_order_only_have_other_neighbours():
    trees = [parse_brackets(text, any_label=True) for text in ("[A [B ] [C ] ]", "[A [C ] [B ] ]")]
    units = TreePieceTokenizer.train([*trees] * 5).units
    one, other = (Counter(unit_parts(units.shapes[units.find(tree)], units.labels)) for tree in trees)
    assert set(one - other) == {"| ~ B", "B ~ C"}
    assert set(other - one) == {"| ~ C", "C ~ B"}


def test_every_part_starts_at_the_usual_scale():
    torch.manual_seed(0)
    compositional = CompositionalEmbedding(TOY, 512)
    assert compositional().shape == (len(TOY), 512)
    assert (compositional.table.std(1) - 0.02).abs().max().item() < 0.004


def test_a_unit_trains_what_it_shares_and_nothing_else():
    model = CompositionalEmbedding(TOY, 8)
    model()[3].sum().backward()
    assert model.table.grad.any(1).nonzero().flatten().tolist() == parts_of(3)


def test_gradients_reach_the_shared_table_and_the_part_of_each_unit():
    torch.manual_seed(0)
    decoder = UnitDecoder(TOY, 8, DecoderConfig(n_heads=2), Extensions(compositional=True))
    decoder.symbols()[3].sum().backward()
    assert decoder.embedding.symbols.grad.any(1).nonzero().flatten().tolist() == [3]
    assert decoder.compositional.table.grad.any(1).nonzero().flatten().tolist() == parts_of(3)


def test_a_saved_state_has_the_table_only():
    model = CompositionalEmbedding(TOY, 8)
    assert set(model.state_dict()) == {"table"}
    again = CompositionalEmbedding(TOY, 8)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(), model())


def test_the_embeddings_follow_the_weights():
    decoder = UnitDecoder(TOY, 8, DecoderConfig(n_heads=2), Extensions(compositional=True))
    first = decoder.symbols().detach()
    with torch.no_grad():
        decoder.compositional.table.add_(1)
    assert not torch.equal(first, decoder.symbols())
    changed = decoder.symbols().detach()
    decoder.load_state_dict({name: weight * 2 for name, weight in decoder.state_dict().items()})
    assert torch.allclose(decoder.symbols(), 2 * changed)
