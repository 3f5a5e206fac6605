"""Drawings of trees: as indented lines for terminals (`outline`) and as SVG for notebooks and pages (`svg`).

Both start from the same list of boxes (`sketch`), one for each node and for each run of words, which also counts the
nodes that a large tree has beyond the limits of a drawing. Given the unit of each node, a drawing numbers or colours
the nodes by unit and shows the edges between units as dotted lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from treepiece.checks import whole_number
from treepiece.errors import OptionError
from treepiece.trees.node import Kind, Node


@dataclass
class Box:
    """A node, or a run of words below a node.

    `parent` is the index of the parent's box. `unit` is the number of the unit that the node belongs to, None if units
    are not drawn. `n_hidden` counts the nodes below that are not drawn.
    """

    text: str
    is_words: bool
    parent: int | None
    depth: int
    unit: int | None = None
    n_hidden: int = 0

    @property
    def hidden_note(self) -> str:
        """The text that stands for the nodes that are not drawn."""
        return f"… {self.n_hidden:,} more" if self.n_hidden else ""


def sketch(tree: Node, units: Sequence[int] | None = None, *, max_depth: int = 64, max_boxes: int = 2_000) -> list[Box]:
    """Return the boxes of a drawing in pre-order; `units` gives the unit of each node in pre-order.

    Levels and boxes are limited, because a full drawing of a very deep or wide tree would exhaust the memory.

    >>> [(box.text, box.parent) for box in sketch(Node("A", ["two", "words", Node("B")]))]
    [('A', None), ('two words', 0), ('B', 0)]
    """
    whole_number("max_depth", max_depth, 1)
    boxes: list[Box] = []
    path: list[int] = []  # the boxes of the open nodes
    n_skipped = 0  # the number of open nodes without a box
    n_nodes = 0
    for kind, text in tree.events():
        if kind is Kind.CLOSE:
            if n_skipped:
                n_skipped -= 1
            else:
                path.pop()
            continue
        is_full = n_skipped or len(path) >= max_depth or len(boxes) >= max_boxes
        if kind is Kind.OPEN:
            unit = units[n_nodes] if units is not None and n_nodes < len(units) else None
            n_nodes += 1
            if is_full:
                n_skipped += 1
                boxes[path[-1]].n_hidden += 1
            else:
                boxes.append(Box(text, False, path[-1] if path else None, len(path), unit))
                path.append(len(boxes) - 1)
        elif not is_full and boxes[-1].is_words and boxes[-1].parent == path[-1]:
            boxes[-1].text += " " + text
        elif not is_full:
            boxes.append(Box(text, True, path[-1], len(path)))
    if units is not None and len(units) != n_nodes:
        raise OptionError(f"there are units for {len(units)} nodes but the tree has {n_nodes}")
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
    is_last = _last_children(boxes)
    inline = _inline_words(boxes)
    written = set(inline.values())
    rails: list[str] = []
    lines: list[tuple[str, str, Box]] = []
    for place, box in enumerate(boxes):
        if place in written:
            continue
        del rails[max(box.depth - 1, 0) :]
        branch = ""
        if box.parent is not None:
            above = boxes[box.parent]
            dash = "┄┄" if box.unit != above.unit and not box.is_words else "──"
            branch = "".join(rails) + ("└" if is_last[place] else "├") + dash + " "
            rails.append("    " if is_last[place] else "│   ")
        mark = '"' if quote else ""
        words = f" {mark}{boxes[inline[place]].text}{mark}" if place in inline else ""
        text = f"{mark}{box.text}{mark}" if box.is_words else box.text + words
        lines.append((branch, " ".join(filter(None, (text, box.hidden_note))).translate(_PLAIN), box))
    return "\n".join(_finish(lines, colour=colour))


def _last_children(boxes: Sequence[Box]) -> list[bool]:
    last: dict[int | None, int] = {box.parent: place for place, box in enumerate(boxes)}
    return [last[box.parent] == place for place, box in enumerate(boxes)]


def _inline_words(boxes: Sequence[Box]) -> dict[int, int]:
    """Return, for each box whose only child is a run of words, the index of that run: both go on one line."""
    n_children: dict[int | None, int] = {}
    for box in boxes:
        n_children[box.parent] = n_children.get(box.parent, 0) + 1
    return {
        box.parent: place
        for place, box in enumerate(boxes)
        if box.is_words and box.parent is not None and n_children[box.parent] == 1
    }


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
    widths = [len(_shown(box)) * _CHAR + 16 for box in boxes]
    centres, total = _lay_out(boxes, widths)
    height = max(box.depth for box in boxes) * _LEVEL + _HEIGHT + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {total:.0f} {height}" width="{total:.0f}" '
        f'height="{height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">',
        f"<title>{_text(boxes[0].text)}</title>",
    ]
    for place, box in enumerate(boxes):
        if box.parent is not None:
            parts.append(_edge(boxes, centres, place))
    for box, width, centre in zip(boxes, widths, centres, strict=True):
        parts += _box(box, width, centre)
    return "\n".join([*parts, "</svg>"])


def _lay_out(boxes: Sequence[Box], widths: Sequence[float]) -> tuple[list[float], float]:
    """Return the centre of each box and the width of the drawing.

    Leaves are side by side and parents are centred above their children. A parent that is wider than its children
    pushes what follows to the right.
    """
    children: list[list[int]] = [[] for _ in boxes]
    for place, box in enumerate(boxes):
        if box.parent is not None:
            children[box.parent].append(place)
    room = [0.0] * len(boxes)  # the width of each box with everything below it
    below = [0.0] * len(boxes)  # the width of its children side by side
    for place in reversed(range(len(boxes))):
        below[place] = sum(room[child] + _GAP for child in children[place]) - (_GAP if children[place] else 0)
        room[place] = max(widths[place], below[place])
    left = [0.0] * len(boxes)
    left[0] = 8.0
    centres = [0.0] * len(boxes)
    for place in range(len(boxes)):
        centres[place] = left[place] + room[place] / 2
        at = centres[place] - below[place] / 2
        for child in children[place]:
            left[child] = at
            at += room[child] + _GAP
    return centres, room[0] + 16


def _edge(boxes: Sequence[Box], centres: Sequence[float], place: int) -> str:
    box = boxes[place]
    assert box.parent is not None  # only the root has no edge
    is_cut = not box.is_words and box.unit != boxes[box.parent].unit
    dash = ' stroke-dasharray="4 4"' if is_cut else ""
    top = 8 + boxes[box.parent].depth * _LEVEL + _HEIGHT
    return (
        f'<line x1="{centres[box.parent]:.1f}" y1="{top}" x2="{centres[place]:.1f}" y2="{8 + box.depth * _LEVEL}" '
        f'stroke="#8a94a3"{dash}/>'
    )


def _box(box: Box, width: float, centre: float) -> list[str]:
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


def _shown(box: Box) -> str:
    text = box.text if len(box.text) <= _MAX_TEXT else box.text[: _MAX_TEXT - 1] + "…"
    return " ".join(filter(None, (text, box.hidden_note)))


def _text(text: str) -> str:
    """Return text escaped for XML, which allows neither control characters nor lone surrogates."""
    return escape(_NOT_XML.sub("\ufffd", text))
