"""The TreePiece vocabulary: units by id, with their placeholders and probabilities."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from treepiece.errors import UnitError
from treepiece.tokenizer.folding import CONTINUATION, Widths
from treepiece.tokenizer.lattice import Floats
from treepiece.tokenizer.shape import (
    PLACEHOLDER,
    PLACEHOLDER_WORD,
    Shape,
    build_node,
    count_children,
    placeholder_parents,
)
from treepiece.trees.brackets import parse_brackets, quote_label
from treepiece.trees.node import Kind, Node, write_events


@dataclass(frozen=True)
class Unit:
    """A TreePiece unit: a fragment of a tree with placeholders where other units are attached.

    In `tree` a placeholder is the word `_`. `placeholders` lists the label of the parent of each, from left to right.
    """

    id: int
    tree: Node
    placeholders: tuple[str, ...]
    log_p: float

    @property
    def probability(self) -> float:
        """The probability of the unit.

        With the default expansion the probabilities of all units add up to one. With the paper's, those of the units
        without placeholders do, and a unit with placeholders has the probability of the same unit without them.
        """
        return math.exp(self.log_p)

    def __str__(self) -> str:
        return format_unit(self.tree)


def format_unit(tree: Node) -> str:
    """Return a unit as bracket text; labels that such text cannot express are in quotation marks.

    >>> format_unit(Node("noun phrase", [Node("DT"), PLACEHOLDER_WORD]))
    '["noun phrase" [DT ] _ ]'
    """
    return write_events(tree, quote_label, quote_label)


@dataclass(frozen=True)
class Vocabulary(Sequence[Unit]):
    """Units by id, the most probable first; the continuation label is the last label."""

    labels: tuple[str, ...]
    shapes: tuple[Shape, ...]
    log_p: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.shapes)

    @overload
    def __getitem__(self, unit_id: int) -> Unit: ...
    @overload
    def __getitem__(self, unit_id: slice) -> list[Unit]: ...
    def __getitem__(self, unit_id: int | slice) -> Unit | list[Unit]:
        if isinstance(unit_id, slice):
            return [self[number] for number in range(len(self))[unit_id]]
        shape = self.shapes[unit_id]
        return Unit(
            id=range(len(self))[unit_id],
            tree=build_node(shape, self.labels),
            placeholders=tuple(self.labels[label] for label in placeholder_parents(shape)),
            log_p=self.log_p[unit_id],
        )

    def find(self, unit: str | Node) -> int:
        """Return the id of a unit, given as text (`[A [B ] _ ]`) or as a tree with `_` for each placeholder."""
        tree = parse_brackets(unit, any_label=True) if isinstance(unit, str) else unit
        word = next((text for kind, text in tree.events() if kind is Kind.WORD and text != PLACEHOLDER_WORD), None)
        if word is not None:
            raise UnitError(f"a unit must contain labels and placeholders ({PLACEHOLDER_WORD}) only, found {word!r}")
        try:
            return self._ids[tree]
        except KeyError:
            raise UnitError(f"there is no unit {unit!s}: `treepiece tokenizer show` lists all units") from None

    @cached_property
    def _ids(self) -> dict[Node, int]:
        return {build_node(shape, self.labels): unit_id for unit_id, shape in enumerate(self.shapes)}

    @cached_property
    def label_ids(self) -> dict[str, int]:
        """The number of each label."""
        return {label: number for number, label in enumerate(self.labels)}

    @cached_property
    def known_labels(self) -> dict[str, int]:
        """The number of each label that a tree may contain: all except the continuation."""
        return {label: number for label, number in self.label_ids.items() if label != CONTINUATION}

    @cached_property
    def weights(self) -> Floats:
        """The log-probabilities as an array."""
        return np.array(self.log_p)

    @cached_property
    def n_placeholders(self) -> tuple[int, ...]:
        """The number of placeholders of each unit."""
        return tuple(shape.count(PLACEHOLDER) for shape in self.shapes)

    @cached_property
    def widths(self) -> Widths:
        """The most children that the units provide for, by label; wider nodes are folded."""
        most = [0] * len(self.labels)
        for shape in self.shapes:
            for position, n_children in count_children(shape).items():
                most[shape[position]] = max(most[shape[position]], n_children)
        return Widths(most, self.label_ids[CONTINUATION])


def extend_vocabulary(first: Vocabulary, second: Vocabulary) -> Vocabulary:
    """Return the union of two vocabularies, for continued training on trees with new labels.

    The probability of a unit is the mean of its probabilities in the two. The labels of `first` keep their numbers; new
    labels of `second` follow.

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
    # A probability that underflows to zero is replaced by a tiny one, so that the unit stays usable.
    return Vocabulary(labels, tuple(shapes), tuple(math.log(weights[shape] or 1e-300) for shape in shapes))
