"""Predicts rows with references."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from treepiece.data.examples import Example, outcome_of
from treepiece.decoding.types import DecodingConfig
from treepiece.evaluation.outcomes import Outcome
from treepiece.models.trained import ParserModel

_BATCH = 128


def predict(
    model: ParserModel,
    examples: Sequence[Example],
    config: DecodingConfig | None = None,
    *,
    on_rows: Callable[[int], None] | None = None,
) -> list[Outcome]:
    """Return the outcome of each example, in their order; utterances of similar length are parsed together.

    `on_rows` is called with the number of finished rows.
    """
    was_training = model.training
    model.eval()
    outcomes: dict[int, Outcome] = {}
    order = sorted(range(len(examples)), key=lambda place: len(examples[place].subwords.ids))
    for start in range(0, len(order), _BATCH):
        places = order[start : start + _BATCH]
        parses = model.parse([examples[place].subwords for place in places], config)
        for place, (best,) in zip(places, parses, strict=True):
            outcomes[place] = outcome_of(examples[place], best)
        if on_rows:
            on_rows(len(outcomes))
    model.train(was_training)
    return [outcomes[place] for place in range(len(examples))]


def count_matches(
    model: ParserModel,
    examples: Sequence[Example],
    config: DecodingConfig | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> torch.Tensor:
    """Return the number of examples, of correct frames, and of correct skeletons. Shape: (3,)."""
    outcomes = predict(model, examples, config, on_rows=on_rows)
    exact = sum(outcome.is_exact for outcome in outcomes)
    skeletons = sum(outcome.is_skeleton for outcome in outcomes)
    return torch.tensor([len(outcomes), exact, skeletons], dtype=torch.int64)
