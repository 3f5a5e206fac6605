"""A part of the reproduction, and what it is given when it is its turn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from reproduction.store import Json, Record, Store, digest, needs_of
from treepiece.files import replace_files

_PIECES = "pieces"
_MODELS, _MODEL = "models", "model"


@dataclass(frozen=True)
class Part:
    """Work that ends with one result.

    `inputs` is all that the result depends on, in a form that JSON can write, and `needs` the parts whose results it
    starts from; where any of these change, the part is done again. `keeps` tells whether its folder is needed later.
    """

    name: str
    title: str
    inputs: Json
    work: Callable[[Job], Json]
    needs: tuple[str, ...] = ()
    keeps: bool = False

    def is_chosen(self, wanted: str) -> bool:
        """Return whether a name means this part: its own, or that of a group, such as `train`."""
        return self.name == wanted or self.name.startswith(f"{wanted}-")


@dataclass(frozen=True)
class Job:
    """One part at work: the results that it needs, and a folder of its own that survives an interruption."""

    part: Part
    store: Store
    needs: Mapping[str, Record] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of all that the result depends on."""
        return digest({"inputs": self.part.inputs, "needs": needs_of(self.needs)})

    @property
    def folder(self) -> Path:
        """The part's own folder."""
        return self.store.files(self.part.name, self.fingerprint)

    def model_folder(self, name: str = _MODEL) -> Path:
        """Return where the part trains a model."""
        return self.folder / _MODELS / name

    def needed_files(self, name: str) -> Path:
        """Return the folder of a part that this one needs."""
        return self.store.files(name, self.needs[name].fingerprint)

    def needed_model(self, name: str) -> Path:
        """Return where a part that this one needs has trained its model."""
        return self.needed_files(name) / _MODELS / _MODEL

    def piece(self, name: str, make: Callable[[], Json]) -> Json:
        """Return what was made before an interruption, or make it now and keep it."""
        file = f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.json"
        try:
            kept: Json = json.loads((self.folder / _PIECES / file).read_bytes())
        except (FileNotFoundError, ValueError):
            kept = make()
            replace_files(self.folder / _PIECES, {file: json.dumps(kept).encode()})
        return kept


def start_job(part: Part, store: Store) -> Job | None:
    """Return a part as a job; None while a result that it needs is not there."""
    needs = {name: store.read(name) for name in part.needs}
    there = {name: record for name, record in needs.items() if record is not None}
    return Job(part, store, there) if len(there) == len(needs) else None
