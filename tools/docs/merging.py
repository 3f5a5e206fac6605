"""The figure of the merges: before each of them, the pieces of every tree and the count of every pair."""

from __future__ import annotations

from collections.abc import Sequence

from tools.docs.canvas import BLUE, FILLS, GREY, Canvas, draw_tree
from tools.docs.example import N_MERGES, small_corpus
from treepiece.tokenizer.corpus import Corpus
from treepiece.tokenizer.merges import Pieces
from treepiece.tokenizer.shape import build_node
from treepiece.trees.brackets import format_brackets

_ROW, _TOP = 166, 62
_COLUMNS = (64, 232, 424)


def draw() -> str:
    """Return the figure."""
    corpus = small_corpus()
    pieces = Pieces(corpus)
    canvas = Canvas()
    for x, count in zip(_COLUMNS, corpus.counts, strict=False):
        canvas.text(x, 32, f"{count} times", colour=GREY)
    canvas.text(_COLUMNS[2], 32, "pairs of adjacent pieces, and how often they occur", colour=GREY)
    for step in range(N_MERGES + 1):
        y = _TOP + step * _ROW
        canvas.line([(28, y - 16), (772, y - 16)], opacity=0.4)
        canvas.text(28, y + 18, f"{step + 1}." if step < N_MERGES else "end", colour=GREY)
        _draw_trees(canvas, corpus, pieces.root, y)
        ranked = sorted(pieces.rank(pair) for pair in range(len(pieces.shapes)) if pieces.count[pair])
        _draw_pairs(canvas, corpus, pieces, [pair for *_, pair in ranked], y)
        if ranked:
            pieces.join_all(ranked[0][-1])
    return canvas.finish("Merges, one after the other", 800, _TOP + (N_MERGES + 1) * _ROW - 16)


def _draw_trees(canvas: Canvas, corpus: Corpus, owners: Sequence[int], y: float) -> None:
    first = 0
    for tree, x in zip(corpus.trees, _COLUMNS, strict=False):
        mine = owners[first : first + tree.n_nodes]
        rank = {owner: number for number, owner in enumerate(dict.fromkeys(mine))}
        draw_tree(canvas, tree, x, y, [rank[owner] for owner in mine])
        first += tree.n_nodes


def _draw_pairs(canvas: Canvas, corpus: Corpus, pieces: Pieces, ranked: Sequence[int], y: float) -> None:
    x = _COLUMNS[2]
    if not ranked:
        canvas.text(x, y + 18, "none is left: every tree is one piece", colour=GREY)
    for number, pair in enumerate(ranked):
        top = y + number * 29
        text = format_brackets(build_node(pieces.shapes[pair], corpus.labels), any_label=True)
        if number == 0:
            canvas.box(x - 10, top, 356, FILLS[4])
            canvas.text(x + 336, top + 18, "is merged", anchor="end", colour=BLUE, bold=True)
        canvas.text(x, top + 18, f"{pieces.count[pair]}", mono=True, bold=number == 0)
        canvas.text(x + 24, top + 18, text, mono=True, bold=number == 0)
