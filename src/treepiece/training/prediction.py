"""What a model makes of rows whose answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from treepiece.decoding.parse import Parse
from treepiece.evaluation.outcomes import Outcome
from treepiece.models.build import ParserModel
from treepiece.training.examples import Example
from treepiece.trees.align import Span, covered, covering, in_order
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node

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
    chars = list(in_order(example.subwords.chars(span) for span in parse.spans))
    spans = tuple(covering(gold.offsets, span) for span in chars)
    if [covered(gold.offsets, span, len(gold.utterance)) for span in spans] == chars:
        predicted = Frame(gold.words, parse.skeleton, spans, gold.utterance)
    else:
        # A leaf begins or ends inside a word of the gold parse: it is wrong, and must not be widened until it is right.
        gold, predicted = _with_smaller_words(gold, parse.skeleton, chars)
    return Outcome(gold, predicted, example.domain, parse.passes, example.line)


def _with_smaller_words(gold: Frame, skeleton: Node, chars: Sequence[Span]) -> tuple[Frame, Frame]:
    """Return the gold frame, and that of a skeleton and the characters of its leaves, over words that suit both."""
    wanted = [leaf.chars for leaf in gold.leaves]
    cuts = [place for span in (*gold.offsets, *wanted, *chars) for place in span]
    return (
        Frame.from_chars(gold.utterance, gold.skeleton, wanted, cuts),
        Frame.from_chars(gold.utterance, skeleton, chars, cuts),
    )


def count_matches(
    model: ParserModel, examples: Sequence[Example], on_rows: Callable[[int], None] | None = None
) -> torch.Tensor:
    """Return how many examples there are, how many the model gets right, and how many skeletons. Shape: (3,)."""
    outcomes = predict(model, examples, on_rows=on_rows)
    exact = sum(outcome.is_exact for outcome in outcomes)
    skeletons = sum(outcome.is_skeleton for outcome in outcomes)
    return torch.tensor([len(outcomes), exact, skeletons], dtype=torch.int64)
