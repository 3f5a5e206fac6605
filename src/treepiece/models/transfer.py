"""Extends a trained model with new labels: existing weights are kept, new rows are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from treepiece.definition import Definition, ModelKind
from treepiece.models.trained import ParserModel, TrainedModel
from treepiece.models.unit_embeddings import part_names
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.tokenizer.vocabulary import extend_vocabulary


def extend_definition(old: Definition, new: Definition) -> Definition:
    """Return the definition of a model with the labels and units of both; sizes are those of the old one.

    The reranker of the old one is kept; one that only the new one has is added.
    """
    tokenizer = None
    if old.tokenizer is not None and new.tokenizer is not None:
        tokenizer = TreePieceTokenizer(extend_vocabulary(old.tokenizer.units, new.tokenizer.units))
    labels = (*old.labels, *(label for label in new.labels if label not in old.labels))
    extensions = replace(old.extensions, reranker=old.extensions.reranker or new.extensions.reranker)
    return Definition(old.kind, labels, old.pairs | new.pairs, old.decoder, tokenizer, extensions)


@torch.no_grad()
def transfer_weights(old: TrainedModel, definition: Definition, model: ParserModel) -> None:
    """Copy the weights of a trained model into one of an extended definition.

    Rows of tables that stand for a label or a unit are matched by name. Rows of names that the trained model does not
    know keep their initial values, and so does a reranker that it does not have.
    """
    weights = old.model.state_dict()
    old_rows, new_rows = _row_names(old.definition), _row_names(definition)
    for name, weight in model.state_dict().items():
        if name not in weights:
            continue
        if name not in new_rows:
            weight.copy_(weights[name])
            continue
        places = {row: place for place, row in enumerate(old_rows[name])}
        known = [(place, places[row]) for place, row in enumerate(new_rows[name]) if row in places]
        to, source = (torch.tensor(side) for side in zip(*known, strict=True))
        weight[to] = weights[name][source]


def _row_names(definition: Definition) -> dict[str, Sequence[str]]:
    """Return the name of each row, for the tables with one row per label or unit."""
    if definition.kind is not ModelKind.TREEPIECE:
        return _linear_rows("decoder", definition.labels)
    assert definition.tokenizer is not None  # only the baselines have none
    vocabulary, extensions = definition.tokenizer.units, definition.extensions
    units = [str(unit) for unit in vocabulary]
    return {
        "units.embedding.tables.0": [*units, "<start>"],
        "units.bias": units,
        **({"units.embedding.tables.1": [*vocabulary.labels, "<root>"]} if extensions.placeholder_label else {}),
        "units.compositional.table": part_names(vocabulary),
        "units.label_logits.project.weight": vocabulary.labels,
        "units.label_logits.project.bias": vocabulary.labels,
        "spans.embedding.tables.0": [*vocabulary.labels, "<close>"],
        **_linear_rows("reranker.decoder", vocabulary.labels),
    }


def _linear_rows(name: str, labels: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the same for a decoder that writes labels, pointers and brackets."""
    symbols = [*labels, "<close>"]
    return {f"{name}.embedding.tables.0": [*symbols, "<blank>"], f"{name}.bias": symbols}
