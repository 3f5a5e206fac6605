"""The ways to search that are compared: to add one, add it to `DECODINGS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reproduction.store import Json
from treepiece.definition import Definition, ModelKind
from treepiece.errors import BundleError
from treepiece.runtime.models import RuntimeModel


@dataclass(frozen=True)
class Decoding:
    """A way to search: the keyword arguments of `parse`, and whether the model's ranker looks at the beam."""

    name: str
    arguments: Mapping[str, int] = field(default_factory=dict)
    ranks: bool = False

    def to_json(self) -> Json:
        """Return all that a result depends on."""
        return {"name": self.name, "arguments": dict(self.arguments), "ranks": self.ranks}


GREEDY = Decoding("greedy", {"beam": 1})
DECODINGS = (
    GREEDY,
    Decoding("beam 5", {"beam": 5}),
    Decoding("ranked in doubt", {"beam": 1}, ranks=True),  # what a parser does by default, if it has a ranker
    Decoding("beam 5, ranked", {"beam": 5}, ranks=True),
)


def decodings_for(definition: Definition) -> tuple[Decoding, ...]:
    """Return the ways that a model can search in: the baselines greedily, as in the paper; a ranker is not in all."""
    if definition.kind is not ModelKind.TREEPIECE:
        return (GREEDY,)
    return tuple(decoding for decoding in DECODINGS if definition.ranked or not decoding.ranks)


def set_up(model: RuntimeModel, definition: Definition, decoding: Decoding) -> None:
    """Switch the ranker of a model on or off, if it has one."""
    if not definition.ranked:
        return
    if not hasattr(model, "ranks"):
        raise BundleError("the model has a ranker, but no switch for it: beams with and without cannot be compared")
    model.ranks = decoding.ranks
