"""What units share is read off their trees, and learned together."""

import math
from collections import Counter

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import given  # noqa: E402
from strategies import corpora  # noqa: E402

from treepiece import Node, TokenizerConfig, TreePieceTokenizer, parse_brackets  # noqa: E402
from treepiece.data.toy import toy_frames  # noqa: E402
from treepiece.definition import DecoderConfig  # noqa: E402
from treepiece.models.composed import (  # noqa: E402
    N_SIZES,
    ComposedUnits,
    Role,
    feature,
    feature_names,
    unit_features,
)
from treepiece.models.treepiece import UnitDecoder  # noqa: E402
from treepiece.tokenizer.vocabulary import Vocabulary  # noqa: E402

TOY = TreePieceTokenizer.train([frame.skeleton for frame in toy_frames(300)], TokenizerConfig(merges=50)).units


def read(tree, is_root=True):
    """Return the features of a unit by name, the brute-force way."""
    children = [child for child in tree.children if isinstance(child, Node)]
    role = "root" if is_root else "inner" if tree.children else "leaf"
    found = Counter({(role, tree.label): 1, ("hole", tree.label): len(tree.children) - len(children)})
    for child in children:
        found += read(child, is_root=False)
    return +found


def size(tree):
    n_nodes = sum(1 for _ in tree.nodes())
    return [n_nodes <= most for most in (1, 3, 7, 15, math.inf)].index(True)


def check(vocabulary):
    features, n_labels = unit_features(vocabulary), len(vocabulary.labels)
    assert features.shape == (len(vocabulary), len(Role) * n_labels + N_SIZES)
    for unit, row in zip(vocabulary, features, strict=True):
        expected = torch.zeros_like(row)
        for (role, label), count in read(unit.tree).items():
            expected[feature(Role[role.upper()], vocabulary.label_ids[label], n_labels)] = count
        expected[len(Role) * n_labels + size(unit.tree)] = 1
        torch.testing.assert_close(row, expected / expected.norm())


def test_features_of_the_toy_units_are_those_of_their_trees():
    check(TOY)


@given(corpora())
def test_features_are_those_of_the_trees(corpus):
    check(TreePieceTokenizer.train(zip(corpus.trees, corpus.counts, strict=True), TokenizerConfig(merges=5)).units)


def test_every_size_has_its_feature():
    labels, sizes = ("A", "+"), (1, 2, 3, 4, 7, 8, 15, 16, 40)
    chains = tuple((0,) * n + (-1,) * n for n in sizes)
    features = unit_features(Vocabulary(labels, chains, (0.0,) * len(sizes)))
    assert features[:, -N_SIZES:].argmax(1).tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_units_that_differ_in_order_only_share_their_composed_part():
    trees = [parse_brackets(text, any_label=True) for text in ("[A [B ] [C ] ]", "[A [C ] [B ] ]", "[A [C ] ]")]
    units = TreePieceTokenizer.train([*trees] * 5).units
    composed = ComposedUnits(units, 8)().detach()
    one, other, different = (composed[units.find(tree)] for tree in trees)
    torch.testing.assert_close(one, other)
    assert not torch.allclose(one, different)


def test_every_unit_starts_at_the_usual_scale():
    torch.manual_seed(0)
    composed = ComposedUnits(TOY, 512)().detach()
    assert composed.shape == (len(TOY), 512)
    assert abs(composed.std().item() - 0.02) < 0.001
    assert (composed.std(1) - 0.02).abs().max().item() < 0.004


def test_a_unit_trains_what_it_shares_and_nothing_else():
    model = ComposedUnits(TOY, 8)
    model()[3].sum().backward()
    assert torch.equal(model.table.grad.any(1), model.features[3] > 0)


def test_gradients_reach_the_shared_table_and_the_part_of_each_unit():
    torch.manual_seed(0)
    decoder = UnitDecoder(TOY, 8, DecoderConfig(n_heads=2), composed=True)
    decoder.symbols()[3].sum().backward()
    assert decoder.embedding.symbols.grad.any(1).nonzero().flatten().tolist() == [3]
    assert torch.equal(decoder.composed.table.grad.any(1), decoder.composed.features[3] > 0)


def test_a_saved_state_has_the_table_only():
    model = ComposedUnits(TOY, 8)
    assert set(model.state_dict()) == {"table"}
    again = ComposedUnits(TOY, 8)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(), model())


def test_a_feature_has_the_same_name_in_every_vocabulary():
    names = feature_names(TOY)
    assert len(set(names)) == len(names) == unit_features(TOY).shape[1]
    for role, label in ((Role.LEAF, 0), (Role.HOLE, 2)):
        assert names[feature(role, label, len(TOY.labels))] == f"{role.name} {TOY.labels[label]}"


def test_what_is_kept_follows_the_weights():
    decoder = UnitDecoder(TOY, 8, DecoderConfig(n_heads=2), composed=True).eval()
    with torch.no_grad():
        first = decoder.symbols()
        assert decoder.symbols() is first
        decoder.composed.table.add_(1)
        changed = decoder.symbols()
        assert not torch.equal(first, changed)
        decoder.load_state_dict({name: weight * 2 for name, weight in decoder.state_dict().items()})
        assert torch.allclose(decoder.symbols(), 2 * changed)
    assert decoder.symbols().requires_grad
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=0.1, fused=True)
    decoder.train()
    decoder.symbols().sum().backward()
    optimizer.step()
    decoder.eval()
    trained = decoder.symbols().detach()
    with torch.no_grad():
        assert torch.equal(decoder.symbols(), trained)
