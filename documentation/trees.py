"""Trees on a canvas: parents above their children, one colour a unit, cuts dashed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from documentation.canvas import BOX, FAINT, FILLS, Canvas, label_width
from treepiece.tokenizer.shape import PLACEHOLDER
from treepiece.trees.node import Kind, Node

LEVEL = 50
_GAP = 12
_HOLE = "#ffffff"


@dataclass(frozen=True)
class Place:
    """Where a node or a placeholder is: the middle of its box, and its top."""

    x: float
    y: float
    parent: int | None
    text: str
    is_hole: bool


@dataclass(frozen=True)
class Layout:
    """The places of a tree in pre-order, and how much room it takes."""

    places: tuple[Place, ...]
    width: float
    height: float


def lay_out(tree: Node) -> Layout:
    """Return where the nodes of a tree go; a word of it is a placeholder."""
    texts: list[str] = []
    parents: list[int | None] = []
    depths: list[int] = []
    holes: list[bool] = []
    path: list[int] = []
    for kind, text in tree.events():
        if kind is Kind.CLOSE:
            path.pop()
            continue
        texts.append(text)
        parents.append(path[-1] if path else None)
        depths.append(len(path))
        holes.append(kind is Kind.WORD)
        if kind is Kind.OPEN:
            path.append(len(texts) - 1)
    children: list[list[int]] = [
        [place for place, above in enumerate(parents) if above == p] for p in range(len(texts))
    ]
    room = [0.0] * len(texts)
    below = [0.0] * len(texts)
    for place in reversed(range(len(texts))):
        below[place] = sum(room[child] for child in children[place]) + _GAP * max(len(children[place]) - 1, 0)
        room[place] = max(label_width(texts[place]), below[place])
    left = [0.0] * len(texts)
    for place, few in enumerate(children):
        at = left[place] + (room[place] - below[place]) / 2
        for child in few:
            left[child] = at
            at += room[child] + _GAP
    places = tuple(
        Place(left[p] + room[p] / 2, depths[p] * LEVEL, parents[p], texts[p], holes[p]) for p in range(len(texts))
    )
    return Layout(places, room[0], max(depths) * LEVEL + BOX)


def draw_tree(
    canvas: Canvas, tree: Node, x: float, y: float, units: Sequence[int] | None = None, *, fill: str | None = None
) -> Layout:
    """Draw a tree with its top left corner at `x`, `y`; `units` gives the unit of each node in pre-order."""
    layout = lay_out(tree)
    n_nodes = 0
    colours: list[int] = []
    for place in layout.places:
        colours.append(units[n_nodes] if units is not None and not place.is_hole else 0)
        n_nodes += not place.is_hole
    for number, place in enumerate(layout.places):
        if place.parent is not None:
            above = layout.places[place.parent]
            is_cut = place.is_hole or colours[number] != colours[place.parent]
            ends = [(x + above.x, y + above.y + BOX), (x + place.x, y + place.y)]
            canvas.line(ends, dashed=is_cut, colour=FAINT)
    for place, colour in zip(layout.places, colours, strict=True):
        text = PLACEHOLDER if place.is_hole else place.text
        shade = _HOLE if place.is_hole else fill or FILLS[colour % len(FILLS)]
        canvas.label(x + place.x, y + place.y, text, shade, dashed=place.is_hole)
    return layout
