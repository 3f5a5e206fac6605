"""Trees drawn as SVG, for notebooks and pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from treepiece.trees.node import Node
from treepiece.trees.sketch import Box, Limits, sketch

_FILLS = ("#cfe3ff", "#ffdfc2", "#d3efd0", "#f3d3f0", "#fff0b8", "#c9efef", "#ffd3d3", "#dcd6f7")
_PLAIN_FILL = "#eceff3"
_LONGEST_TEXT = 60
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CHAR, _HEIGHT, _LEVEL, _GAP = 7.3, 24, 56, 14


def svg(tree: Node, units: Sequence[int] | None = None, *, limits: Limits | None = None) -> str:
    """Return a drawing of a tree; with `units`, the unit of each node in pre-order, each unit has its own colour.

    >>> svg(Node("A")).startswith("<svg")
    True
    """
    boxes = sketch(tree, units, limits or Limits(boxes=500))
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
    """Return the centre of each box and the width of the drawing: leaves side by side, parents above their children.

    A parent wider than its children pushes what comes after it to the right.
    """
    children: list[list[int]] = [[] for _ in boxes]
    for place, box in enumerate(boxes):
        if box.parent is not None:
            children[box.parent].append(place)
    room = [0.0] * len(boxes)  # that each box needs with all below it
    below = [0.0] * len(boxes)  # that its children need side by side
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
    assert box.parent is not None  # the caller asks for boxes below another
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
    text = box.text if len(box.text) <= _LONGEST_TEXT else box.text[: _LONGEST_TEXT - 1] + "…"
    return " ".join(filter(None, (text, box.hidden_note)))


def _text(text: str) -> str:
    """Return text that may stand in XML, which allows neither control characters nor lone surrogates."""
    return escape(_NOT_XML.sub("\ufffd", text))
