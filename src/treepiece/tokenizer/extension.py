"""A vocabulary with the units of another added to it, for trees with new labels."""

from __future__ import annotations

import math
from collections import defaultdict

from treepiece.tokenizer.folding import CONTINUATION
from treepiece.tokenizer.shape import Shape
from treepiece.tokenizer.vocabulary import Vocabulary


def extend_vocabulary(first: Vocabulary, second: Vocabulary) -> Vocabulary:
    """Return the units of both; the probability of a unit is the mean of its probabilities in the two.

    Labels of `first` keep their numbers, those that only `second` has come after them.

    >>> from treepiece import TreePieceTokenizer, parse_brackets
    >>> a, b = (TreePieceTokenizer.train([parse_brackets(text)]).units for text in ("[IN:A ]", "[IN:B ]"))
    >>> extend_vocabulary(a, b).labels
    ('IN:A', 'IN:B', '<continuation>')
    """
    known = [label for label in first.labels if label != CONTINUATION]
    labels = (*known, *(label for label in second.labels if label not in first.label_ids), CONTINUATION)
    numbers = {label: number for number, label in enumerate(labels)}
    weights: defaultdict[Shape, float] = defaultdict(float)
    for vocabulary in (first, second):
        for shape, log_p in zip(vocabulary.shapes, vocabulary.log_p, strict=True):
            renumbered = tuple(token if token < 0 else numbers[vocabulary.labels[token]] for token in shape)
            weights[renumbered] += 0.5 * math.exp(log_p)
    shapes = sorted(weights, key=lambda shape: (-weights[shape], shape))
    # A probability may be too small for a float; such a unit is kept as the least probable there can be.
    return Vocabulary(labels, tuple(shapes), tuple(math.log(weights[shape] or 1e-300) for shape in shapes))
