"""What a model makes of rows whose answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from treepiece.evaluation.outcomes import Outcome
from treepiece.models.definition import ParserModel
from treepiece.models.utterances import Parse
from treepiece.training.examples import Example
from treepiece.trees.align import covering, in_order
from treepiece.trees.frame import Frame

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
    gold = example.frame
    # Two leaves may share a word of the gold parse, because a word can have several subwords.
    spans = tuple(in_order(covering(gold.offsets, example.subwords.chars(span)) for span in parse.spans))
    predicted = Frame(gold.words, parse.skeleton, spans, gold.utterance)
    return Outcome(gold, predicted, example.domain, parse.passes, example.line)


def count_matches(
    model: ParserModel, examples: Sequence[Example], on_rows: Callable[[int], None] | None = None
) -> torch.Tensor:
    """Return how many examples there are, how many the model gets right, and how many skeletons. Shape: (3,)."""
    outcomes = predict(model, examples, on_rows=on_rows)
    exact = sum(outcome.is_exact for outcome in outcomes)
    skeletons = sum(outcome.is_skeleton for outcome in outcomes)
    return torch.tensor([len(outcomes), exact, skeletons], dtype=torch.float64)
