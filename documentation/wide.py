"""The figure of folding: a node that is wider than any seen in training, and what stands in its place."""

from __future__ import annotations

from documentation.canvas import FAINT, Canvas
from documentation.trees import draw_tree
from treepiece import TreePieceTokenizer, parse_brackets
from treepiece.tokenizer.folding import CONTINUATION, fold_node
from treepiece.trees.node import Node

_LEFT, _TOP = 28, 58


def draw() -> str:
    """Return the figure."""
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
    canvas.line([(x - 110, _TOP + 36), (x - 20, _TOP + 36)], colour=FAINT, arrow=True)
    canvas.text(x - 108, _TOP + 28, "is cut as", colour=FAINT)
    places = [unit for unit, shape in enumerate(unit_ids) for _ in tokenizer.units[shape].tree.nodes()]
    layout = draw_tree(canvas, folded, x, _TOP, places)
    x += layout.width + 50
    canvas.text(x, 34, "the units", bold=True)
    for number, unit_id in enumerate(unit_ids):
        canvas.text(x, _TOP + 18 + number * 26, str(tokenizer.units[unit_id]), mono=True)
    return canvas.finish("A node that is wider than any seen is folded", 800, _TOP + layout.height + 28)
