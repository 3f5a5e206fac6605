"""What each model is trained to do: from examples to a loss."""

from __future__ import annotations

from collections.abc import Sequence

from treepiece.models.ar import AutoregressiveModel
from treepiece.models.nar import NonAutoregressiveModel
from treepiece.models.trained import TrainedModel
from treepiece.models.treepiece import TreePieceModel
from treepiece.training.examples import Example
from treepiece.training.objectives.linear import AutoregressiveObjective, NonAutoregressiveObjective
from treepiece.training.objectives.treepiece import TreePieceObjective
from treepiece.training.recipe import Recipe

Objective = TreePieceObjective | AutoregressiveObjective | NonAutoregressiveObjective


def make_objective(trained: TrainedModel, examples: Sequence[Example], recipe: Recipe) -> Objective:
    """Return what a model is to learn from examples."""
    model = trained.model
    if isinstance(model, AutoregressiveModel):
        return AutoregressiveObjective(model, examples, recipe)
    if isinstance(model, NonAutoregressiveModel):
        return NonAutoregressiveObjective(model, examples, recipe)
    assert isinstance(model, TreePieceModel)
    assert trained.definition.tokenizer is not None  # which only the baselines do without
    return TreePieceObjective(model, examples, trained.definition.tokenizer, recipe)
