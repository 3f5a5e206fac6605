"""The figure of the lattice: the ways to cut a tree below each node, their sums, and all partitions that come out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tools.docs.canvas import BLUE, EDGE, GREY, INK, LEVEL, Canvas, draw_tree
from tools.docs.example import N_MERGES, small_corpus
from treepiece.tokenizer.assembly import Order, unit_places
from treepiece.tokenizer.corpus import Forest
from treepiece.tokenizer.em import log_on_grid
from treepiece.tokenizer.folding import CONTINUATION
from treepiece.tokenizer.lattice import Lattice
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.merges import learn_merges
from treepiece.tokenizer.partitions import Partition, nbest_partitions
from treepiece.tokenizer.shape import build_node, insert_placeholders
from treepiece.tokenizer.vocabulary import Vocabulary
from treepiece.trees.brackets import format_brackets

_LEFT = 28


def draw() -> str:
    """Return the figure."""
    corpus = small_corpus()
    base = learn_merges(corpus, N_MERGES)
    weights = log_on_grid(np.array(base.counts) / sum(base.counts))
    forest = Forest({label: number for number, label in enumerate(corpus.labels)})
    tree = corpus.trees[1]
    number = forest.add(tree)
    lattice, nodes = Matcher(base.shapes, cut_anywhere=True).match(forest)
    names = [format_brackets(build_node(shape, corpus.labels), any_label=True) for shape in base.shapes]
    below = {nodes[place]: _subtree(forest, place, corpus.labels) for place in range(len(forest.labels))}
    canvas = Canvas()
    canvas.text(
        _LEFT, 34, "From the leaves up: for each subtree, the units that match at its root (bold: the best)", bold=True
    )
    bottom = _draw_edges(canvas, lattice, weights, names, below, 50)
    canvas.text(
        _LEFT,
        bottom + 34,
        "All partitions of the tree, and the share that each has in the value of its root",
        bold=True,
    )
    total = float(lattice.evaluate(weights, np.logaddexp).node[nodes[number]])
    found = nbest_partitions(lattice, nodes[number], weights, 100)
    x = float(_LEFT + 28)
    for score, pieces in found:
        layout = draw_tree(canvas, tree, x, bottom + 54, _owners(pieces, base.shapes, corpus.labels))
        middle = x + layout.width / 2
        y = bottom + 54 + 2 * LEVEL + 52
        canvas.text(middle, y, f"p = {math.exp(score):.5f}", anchor="middle", mono=True, size=12)
        canvas.text(middle, y + 20, f"{math.exp(score - total):.1%}", anchor="middle", colour=BLUE, bold=True)
        x += layout.width + 98
    return canvas.finish("The lattice of a small tree", 800, bottom + 254)


def _subtree(forest: Forest, place: int, labels: Sequence[str]) -> str:
    children = [_subtree(forest, child, labels) for child in forest.children[place]]
    return " ".join([f"[{labels[forest.labels[place]]}", *children, "]"])


def _draw_edges(
    canvas: Canvas,
    lattice: Lattice,
    weights: np.typing.NDArray[np.float64],
    names: Sequence[str],
    below: dict[int, str],
    y: float,
) -> float:
    """Draw a table of the lattice; return where it ends."""
    scores = lattice.evaluate(weights, np.logaddexp)
    best = lattice.evaluate(weights, np.maximum)
    columns = (_LEFT, 204, 380, 572, 688)
    for x, text in zip(
        columns, ("subtree", "unit at its root", "what it cuts off", "p x values cut off", "sum = value"), strict=True
    ):
        canvas.text(x, y + 20, text, colour=GREY, size=12)
    y += 30
    lists = lattice.lists
    for node, text in sorted(below.items(), key=lambda item: (len(item[1]), item[1])):
        canvas.line([(_LEFT, y), (772, y)], colour=EDGE, opacity=0.5)
        canvas.text(columns[0], y + 20, text, mono=True)
        canvas.text(columns[4], y + 20, f"{math.exp(scores.node[node]):.5f}", mono=True, colour=BLUE, bold=True)
        for edge in range(lists.first_edge[node], lists.last_edge[node]):
            tails = lists.tail[lists.tail_start[edge] + 1 : lists.tail_start[edge + 1]]
            is_best = best.edge[edge] == best.node[node]
            canvas.text(columns[1], y + 20, names[lists.unit[edge]], mono=True, bold=is_best)
            cut = ", ".join(below[tail] for tail in tails) or "nothing"
            canvas.text(columns[2], y + 20, cut, mono=bool(tails), colour=INK if tails else GREY)
            canvas.text(columns[3], y + 20, f"{math.exp(scores.edge[edge]):.5f}", mono=True, bold=is_best)
            y += 24
        y += 6
    return y


def _owners(pieces: Partition, shapes: Sequence[tuple[int, ...]], labels: Sequence[str]) -> list[int]:
    """Return the piece of each node: the pieces get placeholders where they were cut, and are put together again."""
    patterns = tuple(insert_placeholders(shapes[unit], slots) for unit, slots in pieces)
    vocabulary = Vocabulary((*labels, CONTINUATION), patterns, (0.0,) * len(patterns))
    return unit_places(range(len(patterns)), vocabulary, Order.PRE)
