"""What a model makes of rows whose answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from treepiece.decoding.parse import Parse
from treepiece.evaluation.comparison import compare
from treepiece.evaluation.outcomes import Outcome
from treepiece.models.build import ParserModel
from treepiece.training.examples import Example

_BATCH = 128


def predict(
    model: ParserModel,
    examples: Sequence[Example],
    *,
    beam: int = 1,
    on_rows: Callable[[int], None] | None = None,
) -> list[Outcome]:
    """Return the outcome of each example, in their order; utterances of like length are parsed together.

    `on_rows` is called with the number of rows that are done.
    """
    was_training = model.training
    model.eval()
    outcomes: dict[int, Outcome] = {}
    order = sorted(range(len(examples)), key=lambda place: len(examples[place].subwords.ids))
    for start in range(0, len(order), _BATCH):
        places = order[start : start + _BATCH]
        parses = model.parse([examples[place].subwords for place in places], beam=beam)
        for place, (best, *_) in zip(places, parses, strict=True):
            outcomes[place] = _outcome(examples[place], best)
        if on_rows:
            on_rows(len(outcomes))
    model.train(was_training)
    return [outcomes[place] for place in range(len(examples))]


def _outcome(example: Example, parse: Parse) -> Outcome:
    chars = [example.subwords.chars(span) for span in parse.spans]
    return compare(example.frame, parse.skeleton, chars, domain=example.domain, passes=parse.passes, line=example.line)


def count_matches(
    model: ParserModel, examples: Sequence[Example], on_rows: Callable[[int], None] | None = None
) -> torch.Tensor:
    """Return how many examples there are, how many the model gets right, and how many skeletons. Shape: (3,)."""
    outcomes = predict(model, examples, on_rows=on_rows)
    exact = sum(outcome.is_exact for outcome in outcomes)
    skeletons = sum(outcome.is_skeleton for outcome in outcomes)
    return torch.tensor([len(outcomes), exact, skeletons], dtype=torch.int64)
