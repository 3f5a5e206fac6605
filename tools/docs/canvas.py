"""Drawings in SVG: boxes, lines, text and trees on a light card, which can be read on light and on dark pages.

A tree has its parents above their children, one colour for each unit, and dashed edges between units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from treepiece.tokenizer.shape import PLACEHOLDER_WORD
from treepiece.trees.node import Kind, Node

FILLS = ("#cfe3ff", "#ffdfc2", "#d3efd0", "#f3d3f0", "#fff0b8", "#c9efef", "#ffd3d3", "#dcd6f7")
"""The colours of units, those of `TreePieceTokenizer.svg`."""
INK, GREY, EDGE = "#1c2430", "#5a6472", "#8a94a3"
BLUE, ORANGE = "#0b62a8", "#c2500a"
_CARD, _BORDER = "#fbfcfe", "#d5dbe3"

MONO = 7.9
"""How wide a character of a label is; labels are monospaced so that it is known."""
BOX = 26
"""How high a box is."""


class Canvas:
    """Collects what is drawn, in order. Coordinates are rounded to tenths, so that equal drawings are equal texts."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, fill: str, *, dashed: bool = False, height: float = BOX) -> None:
        """Draw a box with round corners."""
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6" fill="{fill}" '
            f'stroke="{EDGE}"{dash}/>'
        )

    def label(self, x: float, y: float, text: str, fill: str, *, dashed: bool = False) -> float:
        """Draw a label in a box whose middle is at `x` and whose top is at `y`; return its width."""
        width = label_width(text)
        self.box(x - width / 2, y, width, fill, dashed=dashed)
        self.text(x, y + 17.5, text, anchor="middle", mono=True)
        return width

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        mono: bool = False,
        colour: str = INK,
        size: float = 13,
        bold: bool = False,
    ) -> None:
        """Draw a line of text."""
        style = ' class="mono"' if mono else ""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}" fill="{colour}"'
            f"{style}{weight}>{escape(text)}</text>"
        )

    def line(
        self,
        points: Sequence[tuple[float, float]],
        *,
        colour: str = EDGE,
        width: float = 1,
        dashed: bool = False,
        arrow: bool = False,
        opacity: float = 1,
    ) -> None:
        """Draw a line through points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        end = ' marker-end="url(#arrow)"' if arrow else ""
        thin = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ""
        self._parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dash}{thin}{end}/>'
        )

    def dot(self, x: float, y: float, colour: str) -> None:
        """Draw a point of a chart."""
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')

    def finish(self, title: str, width: float, height: float) -> str:
        """Return the drawing; `title` says what it shows to those who cannot see it."""
        head = [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" font-family="system-ui, Helvetica, Arial, sans-serif">',
            f"<title>{escape(title)}</title>",
            "<style>.mono { font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }</style>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{GREY}"/></marker></defs>',
            f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="10" fill="{_CARD}" '
            f'stroke="{_BORDER}"/>',
        ]
        return "\n".join([*head, *self._parts, "</svg>\n"])


def label_width(text: str) -> float:
    """Return how wide the box of a label is."""
    return len(text) * MONO + 16


LEVEL = 50
_GAP = 12
_PLACEHOLDER = "#ffffff"


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
    """Return where the nodes of a tree go; a word of the tree is a placeholder."""
    nodes: list[tuple[str, int | None, int, bool]] = []  # text, parent, depth, whether it is a placeholder
    path: list[int] = []
    for kind, text in tree.events():
        if kind is Kind.CLOSE:
            path.pop()
            continue
        nodes.append((text, path[-1] if path else None, len(path), kind is Kind.WORD))
        if kind is Kind.OPEN:
            path.append(len(nodes) - 1)
    children = [[place for place, node in enumerate(nodes) if node[1] == above] for above in range(len(nodes))]
    room = [0.0] * len(nodes)
    below = [0.0] * len(nodes)
    for place in reversed(range(len(nodes))):
        below[place] = sum(room[child] for child in children[place]) + _GAP * max(len(children[place]) - 1, 0)
        room[place] = max(label_width(nodes[place][0]), below[place])
    left = [0.0] * len(nodes)
    for place, few in enumerate(children):
        at = left[place] + (room[place] - below[place]) / 2
        for child in few:
            left[child] = at
            at += room[child] + _GAP
    places = tuple(
        Place(left[p] + room[p] / 2, depth * LEVEL, parent, text, is_hole)
        for p, (text, parent, depth, is_hole) in enumerate(nodes)
    )
    return Layout(places, room[0], max(depth for _, _, depth, _ in nodes) * LEVEL + BOX)


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
            canvas.line(ends, dashed=is_cut, colour=GREY)
    for place, colour in zip(layout.places, colours, strict=True):
        text = PLACEHOLDER_WORD if place.is_hole else place.text
        shade = _PLACEHOLDER if place.is_hole else fill or FILLS[colour % len(FILLS)]
        canvas.label(x + place.x, y + place.y, text, shade, dashed=place.is_hole)
    return layout
