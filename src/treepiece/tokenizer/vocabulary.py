"""The units of a tokenizer: their shapes, placeholders and probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from treepiece.errors import UnitError
from treepiece.tokenizer.folding import CONTINUATION, Widths
from treepiece.tokenizer.lattice import Floats
from treepiece.tokenizer.shape import CLOSE, HOLE, PLACEHOLDER, Shape, build_node, count_children, hole_parents
from treepiece.trees.brackets import parse_brackets, quote_label
from treepiece.trees.node import Kind, Node


@dataclass(frozen=True)
class Unit:
    """A fragment of a tree that is written in one step.

    In `tree` each placeholder stands as the word `_`. `placeholders` names, in the same order, the label of the node
    that each hangs from.
    """

    id: int
    tree: Node
    placeholders: tuple[str, ...]
    log_p: float

    @property
    def probability(self) -> float:
        """The probability of the unit.

        Those of the default expansion add up to one. In the paper's, units that differ in their placeholders only have
        the probability of the same unit without placeholders, and it is those that add up to one.
        """
        return math.exp(self.log_p)

    def __str__(self) -> str:
        """Return the unit as bracket text; labels that such text cannot hold are put in quotation marks."""
        parts = {Kind.OPEN: "[{}", Kind.WORD: "{}", Kind.CLOSE: "]"}
        return " ".join(parts[kind].format(quote_label(text)) for kind, text in self.tree.events())


@dataclass(frozen=True)
class Vocabulary(Sequence[Unit]):
    """Units by id, the most probable first; the last of the labels is the continuation label."""

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
            return [self[place] for place in range(len(self))[unit_id]]
        shape = self.shapes[unit_id]
        return Unit(
            id=range(len(self))[unit_id],
            tree=build_node(shape, self.labels),
            placeholders=tuple(self.labels[label] for label in hole_parents(shape)),
            log_p=self.log_p[unit_id],
        )

    def __iter__(self) -> Iterator[Unit]:
        return (self[unit_id] for unit_id in range(len(self)))

    def find(self, unit: str | Node) -> int:
        """Return the id of a unit, given as text (`[A [B ] _ ]`) or as a tree with `_` for each placeholder."""
        tree = parse_brackets(unit, any_label=True) if isinstance(unit, str) else unit
        try:
            return self._ids[self._shape(tree)]
        except KeyError:
            raise UnitError(f"there is no unit {unit!s}: look it up with `treepiece tokenizer show`") from None

    def _shape(self, tree: Node) -> Shape:
        tokens = []
        for kind, text in tree.events():
            if kind is Kind.WORD:
                if text != PLACEHOLDER:
                    raise UnitError(f"a unit has labels and placeholders ({PLACEHOLDER}) only, found {text!r}")
                tokens.append(HOLE)
            else:
                tokens.append(self.label_ids[text] if kind is Kind.OPEN else CLOSE)
        return tuple(tokens)

    @cached_property
    def _ids(self) -> dict[Shape, int]:
        return {shape: unit_id for unit_id, shape in enumerate(self.shapes)}

    @cached_property
    def label_ids(self) -> dict[str, int]:
        """The number of each label."""
        return {label: number for number, label in enumerate(self.labels)}

    @cached_property
    def known_labels(self) -> dict[str, int]:
        """The number of each label that a tree may have: all but the continuation."""
        return {label: number for label, number in self.label_ids.items() if label != CONTINUATION}

    @cached_property
    def weights(self) -> Floats:
        """The log-probabilities as an array."""
        return np.array(self.log_p)

    @cached_property
    def n_holes(self) -> tuple[int, ...]:
        """How many placeholders each unit has."""
        return tuple(shape.count(HOLE) for shape in self.shapes)

    @cached_property
    def widths(self) -> Widths:
        """How many children of a label the units provide for; wider nodes are folded."""
        most = [0] * len(self.labels)
        for shape in self.shapes:
            for place, n_children in count_children(shape).items():
                most[shape[place]] = max(most[shape[place]], n_children)
        return Widths(most, self.label_ids[CONTINUATION])
