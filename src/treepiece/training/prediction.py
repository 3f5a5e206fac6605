"""Predicts rows with references."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from treepiece.data.examples import Example, outcome_of
from treepiece.decoding.types import DecodingConfig, Hypothesis
from treepiece.evaluation.outcomes import Outcome
from treepiece.models.trained import ParserModel

_BATCH = 128


def batches_by_length(examples: Sequence[Example]) -> Iterator[list[int]]:
    """Yield the indices of examples in batches of similar lengths, which need little padding."""
    order = sorted(range(len(examples)), key=lambda place: len(examples[place].subwords.ids))
    for start in range(0, len(order), _BATCH):
        yield order[start : start + _BATCH]


def best_hypotheses(
    model: ParserModel,
    examples: Sequence[Example],
    config: DecodingConfig | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> list[Hypothesis]:
    """Return the best hypothesis of each example, in their order; `on_rows` gets the number of finished rows."""
    was_training = model.training
    model.eval()
    found: dict[int, Hypothesis] = {}
    for places in batches_by_length(examples):
        parses = model.parse([examples[place].subwords for place in places], config)
        found |= {place: best for place, (best,) in zip(places, parses, strict=True)}
        if on_rows:
            on_rows(len(found))
    model.train(was_training)
    return [found[place] for place in range(len(examples))]


def predict(
    model: ParserModel,
    examples: Sequence[Example],
    config: DecodingConfig | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> list[Outcome]:
    """Return the outcome of each example, in their order; `on_rows` gets the number of finished rows."""
    return list(map(outcome_of, examples, best_hypotheses(model, examples, config, on_rows)))
