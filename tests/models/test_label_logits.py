"""Subwords score labels, whatever else is in the batch; new labels leave what was learned of the others."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from hypothesis import given
from strategies import corpora

from treepiece import TokenizerConfig, TreePieceTokenizer, parse_brackets
from treepiece.definition import DecoderConfig, Definition, Extensions, ModelKind
from treepiece.errors import BundleError
from treepiece.models.encoder import load_encoder
from treepiece.models.trained import (
    TrainedModel,
    build_model,
)
from treepiece.models.transfer import extend_definition, transfer_weights
from treepiece.models.unit_embeddings import LabelLogits, label_counts
from treepiece.tokenizer.vocabulary import Vocabulary

# [A [B ] [B ] _ ], [B ] and [C ]
UNITS = Vocabulary(("A", "B", "C"), ((0, 1, -1, 1, -1, -2, -1), (1, -1), (2, -1)), (0.0, 0.0, 0.0))


def definition_of(*texts, label_logits=True):
    trees = [parse_brackets(text, any_label=True) for text in texts]
    return Definition.of_trees(
        ModelKind.TREEPIECE,
        trees,
        decoder=DecoderConfig(n_heads=2, max_length=32),
        tokenizer=TreePieceTokenizer.train(trees),
        extensions=Extensions(label_logits=label_logits),
    )


@given(corpora())
def test_counts_are_those_of_the_trees(corpus):
    units = TreePieceTokenizer.train(zip(corpus.trees, corpus.counts, strict=True), TokenizerConfig(merges=5)).units
    for unit, row in zip(units, label_counts(units), strict=True):
        found = [node.label for node in unit.tree.nodes()]
        assert row.tolist() == [found.count(label) for label in units.labels]


def test_a_unit_gains_as_often_as_it_has_a_label():
    label_logits = LabelLogits(UNITS, 3)
    with torch.no_grad():
        label_logits.project.weight.copy_(torch.eye(3))
        label_logits.project.bias.copy_(torch.tensor([0.0, 0.0, -1.0]))
    states = torch.tensor([[[0.5, 0.0, 0.0], [0.0, 2.0, 0.0], [-1.0, 1.0, 0.25]]])
    # The most convinced state has 0.5 for A, 2 for B and 0.25 - 1 for C.
    torch.testing.assert_close(label_logits(states), torch.tensor([[0.5 + 2 * 2.0, 2.0, -0.75]]))


def test_masked_subwords_score_nothing():
    torch.manual_seed(0)
    label_logits, states = LabelLogits(UNITS, 4), torch.randn(2, 5, 4)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    found = label_logits(states, mask)
    torch.testing.assert_close(found[0], label_logits(states[:1])[0])
    torch.testing.assert_close(found[1], label_logits(states[1:, :3])[0])


def test_a_saved_state_has_the_projection_only():
    assert set(LabelLogits(UNITS, 4).state_dict()) == {"project.weight", "project.bias"}


@pytest.mark.parametrize("label_logits", [False, True])
def test_known_labels_keep_their_logits_when_others_are_added(tiny_encoder, label_logits):
    first = definition_of("[M [Z ] ]", label_logits=label_logits)
    encoder, subwords = load_encoder(str(tiny_encoder))
    old = TrainedModel(first, build_model(first, encoder), subwords, {})
    wider = extend_definition(first, definition_of("[B [M ] [A ] ]"))
    model = build_model(wider, encoder)
    transfer_weights(old, wider, model)
    assert wider.extensions.label_logits is label_logits  # a model that has learned to do without goes on so
    if not label_logits:
        assert model.units.label_logits is None
        return
    rows = [wider.tokenizer.units.labels.index(label) for label in first.tokenizer.units.labels]
    torch.testing.assert_close(
        model.units.label_logits.project.weight[rows], old.model.units.label_logits.project.weight
    )
    torch.testing.assert_close(model.units.label_logits.project.bias[rows], old.model.units.label_logits.project.bias)


def test_a_definition_says_whether_it_has_label_logits():
    definition = definition_of("[M [Z ] ]")
    value = definition.to_json()
    assert Definition.from_json(value, definition.tokenizer) == definition
    del value["extensions"]["label_logits"]
    with pytest.raises(BundleError, match=r"model\.extensions\.label_logits: missing"):
        Definition.from_json(value, definition.tokenizer)
