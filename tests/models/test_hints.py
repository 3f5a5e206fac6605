"""Words hint at labels, whatever else is in the batch, and labels that are new keep what was learned of the others."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import given  # noqa: E402
from strategies import corpora  # noqa: E402

from treepiece import TokenizerConfig, TreePieceTokenizer, parse_brackets  # noqa: E402
from treepiece.definition import DecoderConfig, Definition, ModelKind  # noqa: E402
from treepiece.models.build import build_model  # noqa: E402
from treepiece.models.encoder import load_encoder  # noqa: E402
from treepiece.models.hints import LabelHints, label_counts  # noqa: E402
from treepiece.models.trained import TrainedModel  # noqa: E402
from treepiece.models.transfer import extend_definition, transfer_weights  # noqa: E402
from treepiece.tokenizer.vocabulary import Vocabulary  # noqa: E402

# [A [B ] [B ] _ ], [B ] and [C ]
UNITS = Vocabulary(("A", "B", "C"), ((0, 1, -1, 1, -1, -2, -1), (1, -1), (2, -1)), (0.0, 0.0, 0.0))


def definition_of(*texts, hinted=True):
    trees = [parse_brackets(text, any_label=True) for text in texts]
    return Definition.of_trees(
        ModelKind.TREEPIECE,
        trees,
        decoder=DecoderConfig(n_heads=2, longest=32),
        tokenizer=TreePieceTokenizer.train(trees),
        hinted=hinted,
    )


@given(corpora())
def test_counts_are_those_of_the_trees(corpus):
    units = TreePieceTokenizer.train(zip(corpus.trees, corpus.counts, strict=True), TokenizerConfig(merges=5)).units
    for unit, row in zip(units, label_counts(units), strict=True):
        found = [node.label for node in unit.tree.nodes()]
        assert row.tolist() == [found.count(label) for label in units.labels]


def test_a_unit_gains_as_often_as_it_has_a_label():
    hints = LabelHints(UNITS, 3)
    with torch.no_grad():
        hints.vote.weight.copy_(torch.eye(3))
        hints.vote.bias.copy_(torch.tensor([0.0, 0.0, -1.0]))
    states = torch.tensor([[[0.5, 0.0, 0.0], [0.0, 2.0, 0.0], [-1.0, 1.0, 0.25]]])
    # The most convinced state has 0.5 for A, 2 for B and 0.25 - 1 for C.
    torch.testing.assert_close(hints(states), torch.tensor([[0.5 + 2 * 2.0, 2.0, -0.75]]))


def test_what_is_masked_hints_at_nothing():
    torch.manual_seed(0)
    hints, states = LabelHints(UNITS, 4), torch.randn(2, 5, 4)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    found = hints(states, mask)
    torch.testing.assert_close(found[0], hints(states[:1])[0])
    torch.testing.assert_close(found[1], hints(states[1:, :3])[0])


def test_a_saved_state_has_the_votes_only():
    assert set(LabelHints(UNITS, 4).state_dict()) == {"vote.weight", "vote.bias"}


@pytest.mark.parametrize("hinted", [False, True])
def test_new_labels_keep_what_words_hint_at(tiny_encoder, hinted):
    first = definition_of("[M [Z ] ]", hinted=hinted)
    encoder, subwords = load_encoder(str(tiny_encoder))
    old = TrainedModel(first, build_model(first, encoder), subwords, {})
    wider = extend_definition(first, definition_of("[B [M ] [A ] ]"))
    model = build_model(wider, encoder)
    transfer_weights(old, wider, model)
    assert wider.hinted is hinted  # a model that has learned to do without goes on so
    if not hinted:
        assert model.units.hints is None
        return
    rows = [wider.tokenizer.units.labels.index(label) for label in first.tokenizer.units.labels]
    torch.testing.assert_close(model.units.hints.vote.weight[rows], old.model.units.hints.vote.weight)
    torch.testing.assert_close(model.units.hints.vote.bias[rows], old.model.units.hints.vote.bias)


def test_a_bundle_of_before_there_were_hints_has_none():
    definition = definition_of("[M [Z ] ]")
    facts = definition.to_json()
    assert Definition.from_json(facts, definition.tokenizer) == definition
    del facts["hinted"]
    assert not Definition.from_json(facts, definition.tokenizer).hinted
