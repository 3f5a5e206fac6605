"""What a parser answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from treepiece.errors import TreeParseError
from treepiece.trees.brackets import format_brackets
from treepiece.trees.frame import Frame, Leaf
from treepiece.trees.outline import outline
from treepiece.trees.svg import svg

NOT_UNDERSTOOD = "not understood"


@dataclass(frozen=True)
class Candidate:
    """One reading of a text.

    `confidence` is how probable it is that the whole frame is right, and `leaf_confidences` the same for the span of
    each leaf. `score` is the share of this reading among those that were asked for: they add up to one. `units` are the
    subtrees that the parser wrote, as text, and `unit_places` says for each node of the skeleton, in pre-order, which
    it belongs to; a baseline has none. `passes` is how often a decoder ran.
    """

    frame: Frame
    confidence: float
    leaf_confidences: tuple[float, ...]
    score: float
    units: tuple[str, ...]
    unit_places: tuple[int, ...]
    passes: int

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The slots that quote the text, with their words exactly as they were typed."""
        return self.frame.leaves

    @cached_property
    def tree(self) -> str | None:
        """The frame as TOP text; None if that cannot hold the user's words, such as a bracket between blanks."""
        try:
            return self.frame.to_brackets()
        except TreeParseError:
            return None

    def to_json(self) -> dict[str, Any]:
        """Return the reading as a value that `json.dumps` can write; skeleton and leaves say all that `tree` does."""
        leaves = [
            {"label": leaf.label, "text": leaf.text, "start": leaf.chars.start, "end": leaf.chars.end, "confidence": p}
            for leaf, p in zip(self.leaves, self.leaf_confidences, strict=True)
        ]
        return {
            "tree": self.tree,
            "skeleton": format_brackets(self.frame.skeleton),
            "confidence": self.confidence,
            "score": self.score,
            "leaves": leaves,
            "units": list(self.units),
            "unit_places": list(self.unit_places),
            "passes": self.passes,
        }


@dataclass(frozen=True)
class Result:
    """The readings of a text, the best first, and how many milliseconds each stage took.

    Where the best is less confident than the caller asked for, the text is not understood: `frame` is None.
    """

    text: str
    candidates: tuple[Candidate, ...]
    understood: bool = True
    times: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def best(self) -> Candidate:
        """The best reading, even if it was not good enough."""
        return self.candidates[0]

    @property
    def frame(self) -> Frame | None:
        """What the text means; None if it was not understood."""
        return self.best.frame if self.understood else None

    @property
    def confidence(self) -> float:
        """How probable it is that the best reading is right."""
        return self.best.confidence

    @property
    def tree(self) -> str | None:
        """The frame as TOP text; None if the text was not understood, or cannot be written so."""
        return self.best.tree if self.understood else None

    def __str__(self) -> str:
        return self.tree or self.draw()

    def draw(self, *, units: bool = False, colour: bool = False) -> str:
        """Return a drawing of the tree for a terminal, if asked with the number or colour of each node's unit."""
        if not self.understood:
            return NOT_UNDERSTOOD
        places = self.best.unit_places if units or colour else ()
        return outline(self.best.frame.tree, places or None, colour=colour)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as a value that `json.dumps` can write."""
        best = self.best.to_json()
        if not self.understood:
            best |= {"tree": None, "skeleton": None, "leaves": [], "units": [], "unit_places": []}
        value = {"text": self.text, "understood": self.understood, **best, "milliseconds": dict(self.times)}
        if len(self.candidates) > 1:
            value["nbest"] = [candidate.to_json() for candidate in self.candidates]
        return value

    def _repr_svg_(self) -> str | None:
        return svg(self.best.frame.tree, self.best.unit_places or None) if self.understood else None
