"""A model with new weights from its definition."""

from __future__ import annotations

from treepiece.definition import Definition, ModelKind
from treepiece.models.ar import AutoregressiveModel
from treepiece.models.encoder import Encoder
from treepiece.models.nar import NonAutoregressiveModel
from treepiece.models.treepiece import TreePieceModel

ParserModel = TreePieceModel | AutoregressiveModel | NonAutoregressiveModel


def build_model(definition: Definition, encoder: Encoder) -> ParserModel:
    """Return the model with new weights on top of an encoder."""
    if definition.kind is ModelKind.TREEPIECE:
        return TreePieceModel(
            encoder,
            definition.unit_grammar(),
            definition.decoder,
            composed=definition.composed,
            hinted=definition.hinted,
            ranked=definition.ranked,
            judged=definition.judged,
        )
    if definition.kind is ModelKind.AR:
        return AutoregressiveModel(encoder, definition.linear_grammar(), definition.decoder)
    return NonAutoregressiveModel(encoder, definition.linear_vocabulary(), definition.decoder)
