"""Two models, one trained from the other, mixed into one.

A run that goes on from a trained model stays near it, and on the way between the two there are often models that are
better than either: what each run has learned of single rows is averaged away, and what both agree on is kept.

    weight = share * the first model's + (1 - share) * the second's

What only the second one has, such as new labels or a judge, stays as it is. Which share is best is seen on rows that
neither was trained on.
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
def mix(first: TrainedModel, second: TrainedModel, share: float) -> TrainedModel:
    """Return a model between two, the second of which began from the first."""
    if first.definition.kind is not second.definition.kind or not _is_extended(first, second):
        raise RecipeError(
            "the second model was not trained from the first: give a model and then one that went on from it with "
            "`treepiece train --init`"
        )
    started, mixed = copy.deepcopy(second.model), copy.deepcopy(second.model)
    transfer_weights(first, second.definition, started)
    begun = started.state_dict()
    for name, weight in mixed.state_dict().items():
        if weight.is_floating_point():
            weight.lerp_(begun[name], share)
    return TrainedModel(second.definition, mixed.eval(), second.subwords, dict(second.facts))


def _is_extended(first: TrainedModel, second: TrainedModel) -> bool:
    """Return whether a model has all labels, units and layers of another, and the layers are of the same size."""
    shapes = [{name: weight.shape[1:] for name, weight in one.model.state_dict().items()} for one in (first, second)]
    return _names(first) <= _names(second) and shapes[0].items() <= shapes[1].items()


def _names(trained: TrainedModel) -> set[str]:
    tokenizer = trained.definition.tokenizer
    return {*trained.definition.labels, *(map(str, tokenizer.units) if tokenizer else ())}


def best_mix(
    first: TrainedModel,
    second: TrainedModel,
    shares: Sequence[float],
    examples: Sequence[Example],
    on_rows: Callable[[float, int], None] | None = None,
) -> TrainedModel:
    """Return the mix with the best exact match on examples that neither was trained on; of equals, the first.

    `on_rows` is called with the share that is tried and how many examples are done.
    """
    found: list[tuple[int, TrainedModel]] = []
    for share in shares:
        trained = mix(first, second, share)
        if isinstance(trained.model, TreePieceModel):
            fit_weights(trained.model, examples[:FITTED])
        report = None if on_rows is None else (lambda done, share=share: on_rows(share, done))
        n_rows, exact, _ = count_matches(trained.model, examples, report).tolist()
        validation = {**trained.facts.get("validation", {}), "rows": n_rows, "em": exact / n_rows}
        trained.facts = {**trained.facts, "validation": validation, "mixed": {"share": share}}
        found.append((exact, trained))
    return max(found, key=lambda one: one[0])[1]
