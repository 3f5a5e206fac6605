"""The figure of the placeholders: a tree that is cut, its units as they are written, and how they are joined."""

from __future__ import annotations

from documentation.canvas import BOX, FAINT, FILLS, Canvas
from documentation.example import REQUEST, request, toy_tokenizer
from documentation.trees import draw_tree, lay_out

_LEFT, _TOP = 28, 58


def draw() -> str:
    """Return the figure."""
    tokenizer = toy_tokenizer()
    skeleton = request().skeleton
    unit_ids = tokenizer.encode(skeleton)
    canvas = Canvas()
    canvas.text(_LEFT, 34, "The best partition cuts one edge", bold=True)
    whole = draw_tree(canvas, skeleton, _LEFT, _TOP, tokenizer.places(unit_ids))
    canvas.text(_LEFT + whole.width + 40, _TOP + 18, REQUEST, colour=FAINT)
    bottom = _TOP + whole.height
    canvas.line([(_LEFT + 120, bottom + 16), (_LEFT + 120, bottom + 52)], colour=FAINT, arrow=True)
    canvas.text(_LEFT + 132, bottom + 39, "encode: a placeholder is left in the child's place", colour=FAINT)
    canvas.line([(_LEFT + 520, bottom + 52), (_LEFT + 520, bottom + 16)], colour=FAINT, arrow=True)
    canvas.text(_LEFT + 532, bottom + 39, "decode: units are joined there", colour=FAINT)
    y = bottom + 96
    x = float(_LEFT)
    hole = (0.0, 0.0)
    for place, unit_id in enumerate(unit_ids):
        unit = tokenizer.units[unit_id]
        canvas.text(x, y - 14, f"unit {unit_id}, p = {unit.probability:.4f}", colour=FAINT, size=12)
        layout = draw_tree(canvas, unit.tree, x, y, fill=FILLS[place])
        if place:
            root = (x, y + BOX / 2)
            canvas.line(
                [root, (x - 24, root[1]), (x - 24, hole[1]), (hole[0] + 20, hole[1])],
                colour=FAINT,
                width=1.5,
                arrow=True,
            )
        for spot in lay_out(unit.tree).places:
            if spot.is_hole:
                hole = (x + spot.x, y + spot.y + BOX / 2)
        x += layout.width + 80
    canvas.text(_LEFT, y + 3 * 50 + 12, f"as a sequence, in pre-order: {' '.join(map(str, unit_ids))}", mono=True)
    return canvas.finish("A tree, its units, and the placeholder that joins them", 800, y + 3 * 50 + 36)
