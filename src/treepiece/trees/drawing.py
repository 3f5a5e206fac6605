"""Drawings of trees: as indented lines for terminals (`outline`) and as SVG for notebooks and pages (`svg`).

Both start from the same list of boxes (`sketch`), one for each node and for each run of words, which also counts the
nodes that a large tree has beyond the limits of a drawing. Given the unit of each node, a drawing numbers or colours
the nodes by unit and shows the edges between units as dotted lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from treepiece.checks import whole_number
from treepiece.errors import OptionError
from treepiece.trees.node import Kind, Node


@dataclass(eq=False)
class Box:
    """A node, or a run of words below a node.

    `unit` is the number of the unit that the node belongs to, None if units are not drawn. `n_hidden` counts the nodes
    below that are not drawn.
    """

    text: str
    is_words: bool
    parent: Box | None
    depth: int
    unit: int | None = None
    n_hidden: int = 0
    children: list[Box] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.parent is not None:
            self.parent.children.append(self)

    @property
    def hidden_note(self) -> str:
        """The text that stands for the nodes that are not drawn."""
        return f"… {self.n_hidden:,} more" if self.n_hidden else ""

    @property
    def inline_words(self) -> Box | None:
        """The only child if that is a run of words: both go on one line."""
        return self.children[0] if len(self.children) == 1 and self.children[0].is_words else None


def sketch(tree: Node, units: Sequence[int] | None = None, *, max_depth: int = 64, max_boxes: int = 2_000) -> list[Box]:
    """Return the boxes of a drawing in pre-order; `units` gives the unit of each node in pre-order.

    Levels and boxes are limited, because a full drawing of a very deep or wide tree would exhaust the memory.

    >>> [(box.text, box.depth) for box in sketch(Node("A", ["two", "words", Node("B")]))]
    [('A', 0), ('two words', 1), ('B', 1)]
    """
    whole_number("max_depth", max_depth, 1)
    if units is not None and len(units) != tree.n_nodes:
        raise OptionError(f"there are units for {len(units)} nodes but the tree has {tree.n_nodes}")
    boxes: list[Box] = []
    path: list[Box] = []  # of the open nodes; for a node without a box, that of the node above
    numbers = iter(() if units is None else units)
    for kind, text in tree.events():
        if kind is Kind.CLOSE:
            path.pop()
            continue
        is_full = len(path) >= max_depth or len(boxes) >= max_boxes  # where it is, it also is below
        if kind is Kind.OPEN:
            unit = next(numbers, None)
            if is_full:
                path[-1].n_hidden += 1
                path.append(path[-1])
            else:
                boxes.append(Box(text, False, path[-1] if path else None, len(path), unit))
                path.append(boxes[-1])
        elif not is_full and boxes[-1].is_words and boxes[-1].parent is path[-1]:
            boxes[-1].text += " " + text
        elif not is_full:
            boxes.append(Box(text, True, path[-1], len(path)))
    return boxes


_COLOURS = (33, 208, 35, 170, 178, 44, 203, 105)  # of the 256-colour palette, distinct on light and dark backgrounds
_PLAIN = dict.fromkeys((*range(32), *range(127, 160), *range(0xD800, 0xE000)), "\ufffd")
"""Replaces control characters, which move the cursor, and lone surrogates, which cannot be encoded."""


def outline(
    tree: Node,
    units: Sequence[int] | None = None,
    *,
    colour: bool = False,
    quote: bool = True,
    max_depth: int = 64,
) -> str:
    """Return a tree as indented lines.

    `units` gives the unit of each node in pre-order; edges between units are dotted. Words are in quotation marks
    unless `quote` is False.

    >>> print(outline(Node("A", [Node("B", ["two", "words"]), Node("C")]), units=[0, 0, 1]))
    A                  1
    ├── B "two words"  1
    └┄┄ C              2
    """
    boxes = sketch(tree, units, max_depth=max_depth)
    mark = '"' if quote else ""
    rails: list[str] = []
    lines: list[tuple[str, str, Box]] = []
    for box in boxes:
        above = box.parent
        if above is not None and box is above.inline_words:
            continue
        del rails[max(box.depth - 1, 0) :]
        branch = ""
        if above is not None:
            is_last = box is above.children[-1]
            dash = "┄┄" if box.unit != above.unit and not box.is_words else "──"
            branch = "".join(rails) + ("└" if is_last else "├") + dash + " "
            rails.append("    " if is_last else "│   ")
        text = f"{mark}{box.text}{mark}" if box.is_words else box.text
        if box.inline_words:
            text += f" {mark}{box.inline_words.text}{mark}"
        lines.append((branch, " ".join(filter(None, (text, box.hidden_note))).translate(_PLAIN), box))
    return "\n".join(_finish(lines, colour=colour))


def _finish(lines: Sequence[tuple[str, str, Box]], *, colour: bool) -> list[str]:
    width = max(len(branch) + len(text) for branch, text, _ in lines)
    result = []
    for branch, text, box in lines:
        number = ""
        if box.unit is not None:
            number = " " * (width - len(branch) - len(text)) + f"  {box.unit + 1}"
            if colour:
                text = f"\x1b[1;38;5;{_COLOURS[box.unit % len(_COLOURS)]}m{text}\x1b[0m"
        result.append(branch + text + number)
    return result


_FILLS = ("#cfe3ff", "#ffdfc2", "#d3efd0", "#f3d3f0", "#fff0b8", "#c9efef", "#ffd3d3", "#dcd6f7")
_PLAIN_FILL = "#eceff3"
_MAX_TEXT = 60
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CHAR, _HEIGHT, _LEVEL, _GAP = 7.3, 24, 56, 14


def svg(tree: Node, units: Sequence[int] | None = None) -> str:
    """Return a drawing of a tree as SVG.

    `units` gives the unit of each node in pre-order; each unit has its own colour.

    >>> svg(Node("A")).startswith("<svg")
    True
    """
    boxes = sketch(tree, units, max_boxes=500)
    centres, total = _lay_out(boxes)
    height = max(box.depth for box in boxes) * _LEVEL + _HEIGHT + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {total:.0f} {height}" width="{total:.0f}" '
        f'height="{height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">',
        f"<title>{_text(boxes[0].text)}</title>",
    ]
    parts += [_edge(box.parent, box, centres) for box in boxes if box.parent is not None]
    for box in boxes:
        parts += _box(box, centres[box])
    return "\n".join([*parts, "</svg>"])


def _lay_out(boxes: Sequence[Box]) -> tuple[dict[Box, float], float]:
    """Return the centre of each box and the width of the drawing.

    Leaves are side by side and parents are centred above their children. A parent that is wider than its children
    pushes what follows to the right.
    """
    room: dict[Box, float] = {}  # the width of each box with everything below it
    below: dict[Box, float] = {}  # the width of its children side by side
    for box in reversed(boxes):
        below[box] = sum(room[child] + _GAP for child in box.children) - (_GAP if box.children else 0)
        room[box] = max(_width(box), below[box])
    left = {boxes[0]: 8.0}
    centres: dict[Box, float] = {}
    for box in boxes:
        centres[box] = left[box] + room[box] / 2
        at = centres[box] - below[box] / 2
        for child in box.children:
            left[child] = at
            at += room[child] + _GAP
    return centres, room[boxes[0]] + 16


def _edge(above: Box, box: Box, centres: Mapping[Box, float]) -> str:
    dash = ' stroke-dasharray="4 4"' if box.unit != above.unit and not box.is_words else ""
    top = 8 + above.depth * _LEVEL + _HEIGHT
    return (
        f'<line x1="{centres[above]:.1f}" y1="{top}" x2="{centres[box]:.1f}" y2="{8 + box.depth * _LEVEL}" '
        f'stroke="#8a94a3"{dash}/>'
    )


def _box(box: Box, centre: float) -> list[str]:
    width = _width(box)
    top = 8 + box.depth * _LEVEL
    label = f'<text x="{centre:.1f}" y="{top + 16}" text-anchor="middle"'
    if box.is_words:
        return [f'{label} fill="#8a94a3" font-style="italic">{_text(_shown(box))}</text>']
    fill = _PLAIN_FILL if box.unit is None else _FILLS[box.unit % len(_FILLS)]
    return [
        f'<rect x="{centre - width / 2:.1f}" y="{top}" width="{width:.1f}" height="{_HEIGHT}" rx="6" fill="{fill}" '
        'stroke="#8a94a3"/>',
        f'{label} fill="#1c2430">{_text(_shown(box))}</text>',
    ]


def _width(box: Box) -> float:
    return len(_shown(box)) * _CHAR + 16


def _shown(box: Box) -> str:
    text = box.text if len(box.text) <= _MAX_TEXT else box.text[: _MAX_TEXT - 1] + "…"
    return " ".join(filter(None, (text, box.hidden_note)))


def _text(text: str) -> str:
    """Return text escaped for XML, which allows neither control characters nor lone surrogates."""
    return escape(_NOT_XML.sub("\ufffd", text))
