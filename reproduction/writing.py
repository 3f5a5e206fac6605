"""What the judge of a TreePiece model writes when it is made to.

The judge is the decoder of the autoregressive baseline, trained beside the units. Made to write, token by token, it is
an autoregressive parser with the same encoder, rows and epochs as the TreePiece parser that it belongs to: between the
two ways to decode, all else is equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reproduction.store import Json
from treepiece.data.rows import Row

if TYPE_CHECKING:
    from treepiece.models.ar import AutoregressiveModel
    from treepiece.models.trained import TrainedModel


def make_writer(trained: TrainedModel) -> AutoregressiveModel | None:
    """Return the encoder and the judge of a model as an autoregressive parser; None where there is no judge."""
    from treepiece.decoding.linear import LinearGrammar
    from treepiece.models.ar import AutoregressiveModel
    from treepiece.models.treepiece import TreePieceModel

    model, definition = trained.model, trained.definition
    if not isinstance(model, TreePieceModel) or model.judge is None:
        return None
    grammar = LinearGrammar(model.judge.vocabulary, definition.pairs, budget=definition.decoder.longest)
    writer = AutoregressiveModel(model.encoder, grammar, definition.decoder)
    writer.decoder = model.judge.decoder
    return writer.eval()


def score_writer(folder: Path, rows: Sequence[Row]) -> Json:
    """Return the scores of what the judge of a model writes greedily in PyTorch; none where there is no judge."""
    from reproduction.summary import summarise
    from treepiece.cli.console import progress
    from treepiece.models.trained import load_model
    from treepiece.training.examples import make_examples
    from treepiece.training.prediction import predict

    trained = load_model(folder)
    writer = make_writer(trained)
    if writer is None:
        return {}
    examples, _ = make_examples(rows, trained.subwords)
    with progress() as bars:
        task = bars.add_task("judge writes", total=len(examples), unit="rows")
        outcomes = predict(writer, examples, on_rows=lambda done: bars.update(task, completed=done))
    return summarise(outcomes)
