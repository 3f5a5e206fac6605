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
    """A way to search: the keyword arguments of `parse`, and whether the model's ranker and judge look at the beam."""

    name: str
    arguments: Mapping[str, int] = field(default_factory=dict)
    ranks: bool = False
    judges: bool = False

    def to_json(self) -> Json:
        """Return all that a result depends on."""
        return {"name": self.name, "arguments": dict(self.arguments), "ranks": self.ranks, "judges": self.judges}

    def fits(self, definition: Definition) -> bool:
        """Return whether a model can search so; with a judge, a ranker has its say too, where there is one."""
        return definition.judged if self.judges else definition.ranked or not self.ranks


GREEDY = Decoding("greedy", {"beam": 1})
DECODINGS = (
    GREEDY,
    Decoding("beam 5", {"beam": 5}),
    Decoding("ranked in doubt", {"beam": 1}, ranks=True),  # what a parser does by default, if it has a ranker
    Decoding("judged in doubt", {"beam": 1}, ranks=True, judges=True),  # and if it has a judge
    Decoding("beam 5, ranked", {"beam": 5}, ranks=True),
    Decoding("beam 5, judged", {"beam": 5}, ranks=True, judges=True),
)


def decodings_for(definition: Definition) -> tuple[Decoding, ...]:
    """Return the ways that a model can search in: the baselines greedily, as in the paper; a ranker is not in all."""
    if definition.kind is not ModelKind.TREEPIECE:
        return (GREEDY,)
    return tuple(decoding for decoding in DECODINGS if decoding.fits(definition))


def set_up(model: RuntimeModel, definition: Definition, decoding: Decoding) -> None:
    """Switch the ranker and the judge of a model on or off, if it has them."""
    for switch, is_there, is_on in (
        ("ranks", definition.ranked, decoding.ranks),
        ("judges", definition.judged, decoding.judges),
    ):
        if is_there and not hasattr(model, switch):
            raise BundleError(
                f"the model {switch}, but has no switch for it: beams with and without cannot be compared"
            )
        if is_there:
            setattr(model, switch, is_on)
