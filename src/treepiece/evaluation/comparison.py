"""A predicted frame beside the gold frame, over the same words."""

from __future__ import annotations

from collections.abc import Sequence

from treepiece.evaluation.outcomes import Outcome
from treepiece.trees.align import Span, covered, covering, in_order
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node


def compare(
    gold: Frame, skeleton: Node, chars: Sequence[Span], *, domain: str | None, passes: int, line: int = 0
) -> Outcome:
    """Return the outcome of a skeleton whose leaves cover the given characters of the gold frame's utterance."""
    chars = list(in_order(chars))
    spans = tuple(covering(gold.offsets, span) for span in chars)
    if [covered(gold.offsets, span, len(gold.utterance)) for span in spans] == chars:
        return Outcome(gold, Frame(gold.words, skeleton, spans, gold.utterance), domain, passes, line)
    # A leaf begins or ends inside a word of the gold parse: it is wrong, and must not be widened until it is right.
    wanted = [leaf.chars for leaf in gold.leaves]
    cuts = [place for span in (*gold.offsets, *wanted, *chars) for place in span]
    return Outcome(
        Frame.from_chars(gold.utterance, gold.skeleton, wanted, cuts),
        Frame.from_chars(gold.utterance, skeleton, chars, cuts),
        domain,
        passes,
        line,
    )
