"""The parts and how far they are, for eyes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from reproduction.part import Part
from reproduction.running import format_seconds
from reproduction.states import State, standing_of
from reproduction.store import Store
from treepiece.cli.console import note


def show_parts(chosen: Sequence[Part], parts: Sequence[Part], store: Store) -> None:
    """Write a line for each part, on standard error like all that is said on the way."""
    lines = []
    counts: Counter[State] = Counter()
    for part in chosen:
        standing = standing_of(part, parts, store)
        counts[standing.state] += 1
        record = store.read(part.name) if standing.state is State.DONE else None
        state = f"done in {format_seconds(record.seconds)}" if record else str(standing.state)
        lines.append((part.name, state, part.title))
    widths = [max((len(line[column]) for line in lines), default=0) for column in (0, 1)]
    for name, state, title in lines:
        note(f"{name:{widths[0]}}  {state:{widths[1]}}  {title}")
    note(", ".join(f"{count} {state}" for state, count in counts.items()) or "there are no parts to do")
