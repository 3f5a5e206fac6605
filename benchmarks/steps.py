"""Counts the decoder passes that each parser needs for the gold trees of TOPv2.

    python benchmarks/steps.py [--split eval] [--json] [--plot FILE.png] [--subwords NAME]

TreePiece: one pass a unit, and one for the spans where there is a leaf. Autoregressive: one pass a token (labels, two
pointers a leaf, closing brackets). Non-autoregressive: one. The tokenizer is trained on the train split.

`--plot` draws Figure 3 of the paper: passes against the number of tokens of the logical form. The paper counts tokens
of RoBERTa's BPE, but does not say of which text, and that tokenizer is not part of this project. So the tokens here are
those that the autoregressive parser writes, and its curve is the diagonal. `--subwords roberta-base` (a name on the
Hugging Face hub, or a folder with a tokenizer.json) counts instead the subwords of the decoupled parse with its labels,
brackets and words, which is as near to the paper as we can tell.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from corpora import topv2_folder
from tokenizers import Tokenizer

from treepiece import Frame, TreePieceTokenizer
from treepiece.data.reader import read_rows
from treepiece.decoding.linear import LinearVocabulary
from treepiece.trees.frame import leaf_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"treepiece": "TreePiece", "ar": "autoregressive", "nar": "non-autoregressive"}
COLOURS = {"treepiece": "#0072b2", "ar": "#d55e00", "nar": "#595959"}  # apart for colour-blind readers too
FEWEST = 10  # trees of one length whose mean is worth drawing


class Counts(NamedTuple):
    """What one tree needs: tokens of its logical form, units, passes of each parser.

    A tree with a label that train has not has no units (None), and no passes of TreePiece.
    """

    n_tokens: int
    n_units: int | None
    passes: dict[str, int]


class Point(NamedTuple):
    """The passes of one parser over the trees whose logical form has so many tokens."""

    tokens: int
    trees: int
    mean: float
    p10: int
    p90: int


Curves = dict[str, list[Point]]


def count_passes(
    frames: Sequence[Frame], tokenizer: TreePieceTokenizer, count_tokens: Callable[[Frame], int] | None = None
) -> list[Counts]:
    """Return what each tree needs; tokens are those that the autoregressive parser writes, unless they are counted."""
    vocabulary = LinearVocabulary(sorted({node.label for frame in frames for node in frame.skeleton.nodes()}))
    unit_ids = tokenizer.encode_batch([frame.skeleton for frame in frames], missing_ok=True)
    counts = []
    for frame, ids in zip(frames, unit_ids, strict=True):
        n_written = len(vocabulary.write(frame.skeleton, frame.spans))
        passes = {"ar": n_written, "nar": 1}
        if ids is not None:
            passes["treepiece"] = len(ids) + bool(leaf_labels(frame.skeleton))
        n_tokens = n_written if count_tokens is None else count_tokens(frame)
        counts.append(Counts(n_tokens, None if ids is None else len(ids), passes))
    return counts


def summarize(counts: Sequence[Counts]) -> dict[str, float]:
    """Return the mean number of decoder passes a tree of each parser, and the share of trees that are one unit."""
    passes = {name: [tree.passes[name] for tree in counts if name in tree.passes] for name in NAMES}
    return {
        "trees": len(counts),
        "unencodable": sum(tree.n_units is None for tree in counts),
        "single_unit": sum(tree.n_units == 1 for tree in counts) / len(counts),
        **{name: sum(values) / len(values) for name, values in passes.items()},
    }


def group_by_length(counts: Iterable[Counts]) -> Curves:
    """Return for each parser the mean and the 10th and 90th percentile of its passes, by number of tokens."""
    groups: dict[str, defaultdict[int, list[int]]] = {name: defaultdict(list) for name in NAMES}
    for tree in counts:
        for name, passes in tree.passes.items():
            groups[name][tree.n_tokens].append(passes)
    return {name: [_point(n, group[n]) for n in sorted(group)] for name, group in groups.items()}


def _point(n_tokens: int, passes: Sequence[int]) -> Point:
    # Passes are whole numbers: a percentile between two of them would be one that no tree has.
    p10, p90 = np.percentile(passes, [10, 90], method="inverted_cdf").tolist()
    return Point(n_tokens, len(passes), sum(passes) / len(passes), p10, p90)


def subword_counter(name: str) -> Callable[[Frame], int]:
    """Return what counts the subwords of a logical form, by the tokenizer of a folder or of the Hugging Face hub."""
    file = Path(name) / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(name)
    except Exception as error:  # the library raises nothing narrower
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        sys.exit(
            f"the tokenizer {name!r} of --subwords cannot be loaded: {reason}; give a name on the Hugging Face hub, "
            "such as roberta-base, or a folder with a tokenizer.json"
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda frame: len(tokenizer.encode(frame.to_brackets(), add_special_tokens=False).ids)


def new_figure() -> Figure:
    """Return an empty figure that needs no screen, or stop and say how to install what draws it."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        sys.exit("--plot needs matplotlib, which is not installed: pip install 'treepiece[bench]'")
    figure = Figure(figsize=(8, 5), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    FigureCanvasAgg(figure)
    return figure


def draw(figure: Figure, curves: Curves, *, data: str, tokens: str) -> None:
    """Draw passes against length; `data` says of which trees, `tokens` which tokens are counted."""
    axes = figure.subplots()
    for name in reversed(NAMES):  # TreePiece last, above the others
        _draw_curve(axes, name, [point for point in curves[name] if point.trees >= FEWEST])
    axes.set_title("Decoder passes by length of the logical form", loc="left", fontsize=15, pad=28)
    note = f"{data}: mean, 10th to 90th percentile; at least {FEWEST} trees a point"
    # Not in the layout, which would make the axes narrower where the note is wider than they are.
    axes.text(0, 1.03, note, transform=axes.transAxes, color="#595959", fontsize=10.5, in_layout=False)
    axes.set_xlabel(f"tokens of the logical form, {tokens}", fontsize=12)
    axes.set_ylabel("decoder passes", fontsize=12)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=11, length=0)


def _draw_curve(axes: Axes, name: str, points: Sequence[Point]) -> None:
    """Draw the mean and the band of one parser, and write its name where the curve ends."""
    if not points:
        return
    lengths, _, means, lows, highs = zip(*points, strict=True)
    colour = COLOURS[name]
    axes.fill_between(lengths, lows, highs, color=colour, alpha=0.15, linewidth=0)
    marker = "o" if len(points) <= 20 else ""  # more of them would hide the line
    axes.plot(lengths, means, color=colour, linewidth=2, marker=marker, markersize=5)
    axes.annotate(
        NAMES[name],
        (lengths[-1], means[-1]),
        xytext=(8, 0),
        textcoords="offset points",
        verticalalignment="center",
        color=colour,
        fontsize=12,
    )


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, format="png")


def to_json(curves: Curves) -> dict[str, list[dict[str, Any]]]:
    """Return the curves as a value that `json.dumps` can write."""
    return {name: [point._asdict() for point in points] for name, points in curves.items()}


def main() -> None:
    """Count, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="eval")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with a table by length")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw passes against length (PNG)")
    parser.add_argument("--subwords", metavar="NAME", help="measure length in subwords, in the paper of roberta-base")
    args = parser.parse_args()
    figure = new_figure() if args.plot else None  # before the work, which would be in vain without matplotlib
    count_tokens = subword_counter(args.subwords) if args.subwords else None
    folder = topv2_folder()
    tokenizer = TreePieceTokenizer.train(row.skeleton for row in read_rows(folder, split="train"))
    frames = [row.frame for row in read_rows(folder, split=args.split) if row.frame is not None]
    counts = count_passes(frames, tokenizer, count_tokens)
    passes, curves = summarize(counts), group_by_length(counts)
    if args.json:
        print(json.dumps(passes | {"by_length": to_json(curves)}))
    else:
        for name, value in passes.items():
            print(f"{name:12} {value:10,.3f}")
    if figure:
        tokens = (
            f"in subwords of {Path(args.subwords).name}" if args.subwords else "as the autoregressive parser writes it"
        )
        draw(figure, curves, data=f"Gold trees of TOPv2 {args.split}", tokens=tokens)
        save(figure, args.plot)


if __name__ == "__main__":
    main()
