"""A model and others that were trained from it, mixed into one.

A run that goes on from a trained model stays near it, and on the way between the two there are often models that are
better than either: what each run has learned of single rows is averaged away, and what all agree on is kept. Several
runs from one start, which saw the rows in another order (`branch` in their recipes), agree on less that is chance:

    weight = share * the first model's + (1 - share) * mean of the branches'

What only the branches have, such as new labels or a judge, stays as it is. Which share is best is seen on rows that
none was trained on.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch

from treepiece.errors import RecipeError
from treepiece.models.trained import TrainedModel
from treepiece.models.transfer import transfer_weights
from treepiece.models.treepiece import TreePieceModel
from treepiece.training.examples import Example
from treepiece.training.prediction import count_matches
from treepiece.training.weighing import FITTED, fit_weights


@torch.no_grad()
def mix(first: TrainedModel, branches: Sequence[TrainedModel], share: float) -> TrainedModel:
    """Return a model between one and the mean of others that began from it."""
    second = branches[0]
    for branch in branches:
        if first.definition.kind is not branch.definition.kind or not _is_extended(first, branch):
            raise RecipeError(
                "the second model was not trained from the first: give a model and then those that went on from it "
                "with `treepiece train --init`"
            )
        if _names(branch) != _names(second) or not _is_extended(branch, second):
            raise RecipeError(
                "the branches know different labels or units: give models that went on from the first with the same "
                "rows"
            )
    mixed = copy.deepcopy(second.model)
    ends = [branch.model.state_dict() for branch in branches]
    for name, weight in mixed.state_dict().items():
        if weight.is_floating_point():
            weight.copy_(torch.stack([end[name] for end in ends]).mean(0))
    started = copy.deepcopy(mixed)  # with what only the branches have, so that a share of it changes nothing
    transfer_weights(first, second.definition, started)
    begun = started.state_dict()
    for name, weight in mixed.state_dict().items():
        if weight.is_floating_point():
            weight.lerp_(begun[name], share)
    return TrainedModel(second.definition, mixed.eval(), second.subwords, dict(second.facts))


def _is_extended(first: TrainedModel, second: TrainedModel) -> bool:
    """Return whether a model has all labels, units and layers of another, and the layers are of the same size."""
    shapes = [{name: weight.shape[1:] for name, weight in one.model.state_dict().items()} for one in (first, second)]
    return {*_names(first)} <= {*_names(second)} and shapes[0].items() <= shapes[1].items()


def _names(trained: TrainedModel) -> tuple[str, ...]:
    """Return what the rows of tables stand for, in their order."""
    tokenizer = trained.definition.tokenizer
    return *trained.definition.labels, *(map(str, tokenizer.units) if tokenizer else ())


def best_mix(
    first: TrainedModel,
    branches: Sequence[TrainedModel],
    shares: Sequence[float],
    examples: Sequence[Example],
    on_rows: Callable[[float, int], None] | None = None,
) -> TrainedModel:
    """Return the mix with the best exact match on examples that none was trained on; of equals, the first.

    `on_rows` is called with the share that is tried and how many examples are done.
    """
    found: list[tuple[int, TrainedModel]] = []
    for share in shares:
        trained = mix(first, branches, share)
        if isinstance(trained.model, TreePieceModel):
            fit_weights(trained.model, examples[:FITTED])
        report = None if on_rows is None else (lambda done, share=share: on_rows(share, done))
        n_rows, exact, _ = count_matches(trained.model, examples, report).tolist()
        validation = {**trained.facts.get("validation", {}), "rows": n_rows, "em": exact / n_rows}
        trained.facts = {
            **trained.facts,
            "validation": validation,
            "mixed": {"share": share, "branches": len(branches)},
        }
        found.append((exact, trained))
    best = max(found, key=lambda one: one[0])[1]
    tried = [[share, exact / len(examples)] for share, (exact, _) in zip(shares, found, strict=True)]
    best.facts = {**best.facts, "mixed": {**best.facts["mixed"], "tried": tried}}
    return best
