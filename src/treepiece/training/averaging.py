"""Weight averaging: one model from several with the same starting point ("model soup").

A run that continues from a trained model stays near it, and between the two there are often models that are better than
either: averaging removes what each has learned from single rows, and keeps what they share. Several runs from the same
start that see the rows in different orders (`shuffle_seed` in their recipes) share less by chance:

    weight = w * the first model's + (1 - w) * mean of the others'

Weights that only the others have, such as those of new labels or a reranker, are not affected by w. The best w is
chosen on rows that no model was trained on.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch

from treepiece.data.examples import Example
from treepiece.errors import RecipeError
from treepiece.models.trained import TrainedModel
from treepiece.models.transfer import transfer_weights
from treepiece.progress import Progress
from treepiece.training.prediction import predict
from treepiece.training.tuning import MAX_TUNING_ROWS, tune


@torch.no_grad()
def average(first: TrainedModel, others: Sequence[TrainedModel], first_weight: float) -> TrainedModel:
    """Return the weighted average of a model and the mean of others that were trained from it."""
    second = others[0]
    for other in others:
        if first.definition.kind is not other.definition.kind or not _is_extended(first, other):
            raise RecipeError(
                "a model was not trained from the first: give a model and then those that were trained from it with "
                "`treepiece train --init`"
            )
        if _names(other) != _names(second) or not _is_extended(other, second):
            raise RecipeError(
                "the models know different labels or units: give models that were trained from the first on the same "
                "rows"
            )
    averaged = copy.deepcopy(second.model)
    ends = [other.model.state_dict() for other in others]
    for name, weight in averaged.state_dict().items():
        if weight.is_floating_point():
            weight.copy_(torch.stack([end[name] for end in ends]).mean(0))
    started = copy.deepcopy(averaged)  # extended by what only the others have, so that averaging does not change it
    transfer_weights(first, second.definition, started)
    begun = started.state_dict()
    for name, weight in averaged.state_dict().items():
        if weight.is_floating_point():
            weight.lerp_(begun[name], first_weight)
    metadata = dict(second.metadata)
    return replace(second, model=averaged.eval(), metadata=metadata, scope=None)  # its encoder is another


def _is_extended(first: TrainedModel, second: TrainedModel) -> bool:
    """Return whether a model has all labels, units and layers of another, and the layers are of the same size."""
    shapes = [{name: weight.shape[1:] for name, weight in one.model.state_dict().items()} for one in (first, second)]
    return {*_names(first)} <= {*_names(second)} and shapes[0].items() <= shapes[1].items()


def _names(trained: TrainedModel) -> tuple[str, ...]:
    """Return the names of the rows of tables, in order."""
    tokenizer = trained.definition.tokenizer
    return *trained.definition.labels, *(map(str, tokenizer.units) if tokenizer else ())


def best_average(
    first: TrainedModel,
    others: Sequence[TrainedModel],
    first_weights: Sequence[float],
    examples: Sequence[Example],
    progress: Progress,
) -> TrainedModel:
    """Return the average with the best exact match on examples that no model was trained on; of equals, the first."""
    found: list[tuple[int, float, TrainedModel]] = []
    n_examples = len(examples) * len(first_weights)
    for first_weight in first_weights:
        trained = average(first, others, first_weight)
        trained.decoding = tune(trained.model, examples[:MAX_TUNING_ROWS])
        begin = len(found) * len(examples)
        outcomes = predict(
            trained.model,
            examples,
            trained.decoding,
            lambda done, begin=begin: progress.update("validating", begin + done, n_examples),  # type: ignore[misc]
        )
        found.append((sum(outcome.is_exact for outcome in outcomes), first_weight, trained))
    exact, first_weight, best = max(found, key=lambda one: one[0])
    tried = [[weight, n / len(examples)] for n, weight, _ in found]
    validation = {"rows": len(examples), "em": exact / len(examples)}
    best.metadata = {
        **best.metadata,
        "validation": {**best.metadata.get("validation", {}), **validation},
        "average": {"first_weight": first_weight, "models": 1 + len(others), "tried": tried},
    }
    return best
