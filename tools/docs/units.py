"""The figures of units: a tree that is cut at a placeholder, and a node that is folded."""

from __future__ import annotations

from tools.docs.canvas import BOX, FILLS, GREY, Canvas, draw_tree, lay_out
from tools.docs.example import REQUEST, request, toy_tokenizer
from treepiece import TreePieceTokenizer, parse_brackets
from treepiece.tokenizer.folding import CONTINUATION, fold_node
from treepiece.trees.node import Node

_LEFT, _TOP = 28, 58


def draw_placeholders() -> str:
    """Return the figure of a tree that is cut, its units as they are written, and how they are joined."""
    tokenizer = toy_tokenizer()
    skeleton = request().skeleton
    unit_ids = tokenizer.encode(skeleton)
    canvas = Canvas()
    canvas.text(_LEFT, 34, "The best partition cuts one edge", bold=True)
    whole = draw_tree(canvas, skeleton, _LEFT, _TOP, tokenizer.places(unit_ids))
    canvas.text(_LEFT + whole.width + 40, _TOP + 18, REQUEST, colour=GREY)
    bottom = _TOP + whole.height
    canvas.line([(_LEFT + 120, bottom + 16), (_LEFT + 120, bottom + 52)], colour=GREY, arrow=True)
    canvas.text(_LEFT + 132, bottom + 39, "encode: a placeholder is left in the child's place", colour=GREY)
    canvas.line([(_LEFT + 520, bottom + 52), (_LEFT + 520, bottom + 16)], colour=GREY, arrow=True)
    canvas.text(_LEFT + 532, bottom + 39, "decode: units are joined there", colour=GREY)
    y = bottom + 96
    x = float(_LEFT)
    placeholder = (0.0, 0.0)
    for place, unit_id in enumerate(unit_ids):
        unit = tokenizer.units[unit_id]
        canvas.text(x, y - 14, f"unit {unit_id}, p = {unit.probability:.4f}", colour=GREY, size=12)
        layout = draw_tree(canvas, unit.tree, x, y, fill=FILLS[place])
        if place:
            root = (x, y + BOX / 2)
            canvas.line(
                [root, (x - 24, root[1]), (x - 24, placeholder[1]), (placeholder[0] + 20, placeholder[1])],
                colour=GREY,
                width=1.5,
                arrow=True,
            )
        for spot in lay_out(unit.tree).places:
            if spot.is_hole:
                placeholder = (x + spot.x, y + spot.y + BOX / 2)
        x += layout.width + 80
    canvas.text(_LEFT, y + 3 * 50 + 12, f"as a sequence, in pre-order: {' '.join(map(str, unit_ids))}", mono=True)
    return canvas.finish("A tree, its units, and the placeholder that joins them", 800, y + 3 * 50 + 36)


def draw_folding() -> str:
    """Return the figure of a node that is wider than any seen in training, and what stands in its place."""
    seen = parse_brackets("[A [B ] [C ] ]", any_label=True)
    tokenizer = TreePieceTokenizer.train([seen] * 5)
    tree = parse_brackets("[A [B ] [C ] [B ] ]", any_label=True)
    unit_ids = tokenizer.encode(tree)
    most = tokenizer.units.widths
    few = (most.most[tokenizer.units.label_ids["A"]], most.most[most.continuation])
    children = tuple(child for child in tree.children if isinstance(child, Node))
    folded = fold_node(Node, tree.label, CONTINUATION, children, few)
    canvas = Canvas()
    canvas.text(_LEFT, 34, f"Training had {few[0]} children at most", bold=True)
    left = draw_tree(canvas, tree, _LEFT, _TOP, tokenizer.places(unit_ids))
    x = _LEFT + left.width + 130
    canvas.line([(x - 110, _TOP + 36), (x - 20, _TOP + 36)], colour=GREY, arrow=True)
    canvas.text(x - 108, _TOP + 28, "is cut as", colour=GREY)
    places = [unit for unit, shape in enumerate(unit_ids) for _ in tokenizer.units[shape].tree.nodes()]
    layout = draw_tree(canvas, folded, x, _TOP, places)
    x += layout.width + 50
    canvas.text(x, 34, "the units", bold=True)
    for number, unit_id in enumerate(unit_ids):
        canvas.text(x, _TOP + 18 + number * 26, str(tokenizer.units[unit_id]), mono=True)
    return canvas.finish("A node that is wider than any seen is folded", 800, _TOP + layout.height + 28)
