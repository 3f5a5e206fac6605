"""The drawings: of times, of passes, of confidences, and of accuracy with few rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from treepiece.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS: Mapping[str, str] = {"treepiece": "TreePiece", "ar": "AR", "nar": "NAR"}
"""The three parsers, and what they are called in tables and drawings."""
COLOURS = {"treepiece": "#0072b2", "ar": "#d55e00", "nar": "#595959"}  # apart for colour-blind readers too
FEWEST = 10  # trees of one length whose mean is worth drawing
_LONG_NAMES = {"treepiece": "TreePiece", "ar": "autoregressive", "nar": "non-autoregressive"}
_OTHER_COLOURS = {KINDS[kind]: colour for kind, colour in COLOURS.items()}
_STYLES = {"before": ":", "after": "-"}


@dataclass(frozen=True)
class Bar:
    """One parser in a plot: its label, its kind, and the times of its rows."""

    label: str
    kind: str
    encoder: npt.NDArray[np.float64]
    full: npt.NDArray[np.float64]


def draw_times(panels: Mapping[str, Sequence[Bar]], n_columns: int, path: Path) -> None:
    """Draw the time of a parse, encoder and decoding, a panel for each title."""
    n_columns = min(n_columns, len(panels))
    n_rows = -(-len(panels) // n_columns)
    figure = new_figure(10, 2.5 * max(n_rows, 1.4))
    grid = figure.subplots(n_rows, n_columns, sharey="row", squeeze=False)
    for axes, (title, bars) in zip(grid.flat, panels.items(), strict=False):
        for place, bar in enumerate(bars):
            encoder, full = float(np.median(bar.encoder)), float(np.median(bar.full))
            axes.bar(place, encoder, color="#cccccc")
            axes.bar(place, full - encoder, bottom=encoder, color=COLOURS[bar.kind])
        axes.set_xticks(range(len(bars)), [bar.label for bar in bars], fontsize=10 if len(bars) <= 3 else 7)
        axes.set_title(title, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for row in grid:
        row[0].set_ylabel("milliseconds (median)")
    figure.suptitle("One parse: encoder (grey) and decoding (colour); TOPv2 eval, batch 1, two threads")
    save(figure, path)


def draw_growth(curves: Mapping[str, Sequence[tuple[int, float, float]]], path: Path) -> None:
    """Draw the seconds of training against the size of a corpus."""
    from matplotlib.ticker import NullFormatter

    figure = new_figure(6, 4)
    axes = figure.subplots()
    for name, points in curves.items():
        axes.loglog([p[0] for p in points], [p[1] for p in points], marker="o", label=name)
    axes.set(xlabel="nodes of the corpus", ylabel="seconds of training", title="Training time of the tree tokenizer")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    save(figure, path)


def draw_passes(curves: Mapping[str, Sequence[Mapping[str, Any]]], path: Path, *, data: str, tokens: str) -> None:
    """Draw passes against the length of the logical form; `data` says of which trees, `tokens` how length is counted.

    A curve is a list of points: tokens, trees, mean, p10, p90. Points of few trees are left out.
    """
    figure = new_figure(8, 5)
    axes = figure.subplots()
    for kind in reversed(list(KINDS)):  # TreePiece last, above the others
        _draw_curve(axes, kind, [point for point in curves[kind] if point["trees"] >= FEWEST])
    axes.set_title("Decoder passes by length of the logical form", loc="left", fontsize=15, pad=28)
    note = f"{data}: mean, 10th to 90th percentile; at least {FEWEST} trees a point"
    # Not in the layout, which would make the axes narrower where the note is wider than they are.
    axes.text(0, 1.03, note, transform=axes.transAxes, color="#595959", fontsize=10.5, in_layout=False)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    _finish(axes, x=f"tokens of the logical form, {tokens}", y="decoder passes")
    save(figure, path)


def _draw_curve(axes: Axes, kind: str, points: Sequence[Mapping[str, Any]]) -> None:
    """Draw the mean and the band of one parser, and write its name where the curve ends."""
    if not points:
        return
    lengths, means, lows, highs = ([point[name] for point in points] for name in ("tokens", "mean", "p10", "p90"))
    axes.fill_between(lengths, lows, highs, color=COLOURS[kind], alpha=0.15, linewidth=0)
    marker = "o" if len(points) <= 20 else ""  # more of them would hide the line
    axes.plot(lengths, means, color=COLOURS[kind], linewidth=2, marker=marker, markersize=5)
    end = lengths[-1], means[-1]
    style: dict[str, Any] = {"textcoords": "offset points", "verticalalignment": "center", "fontsize": 12}
    axes.annotate(_LONG_NAMES[kind], end, xytext=(8, 0), color=COLOURS[kind], **style)


def draw_calibration(scores: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """Draw confidence against the share of right answers: the first model of each kind, before and after fitting."""
    figure = new_figure(10, 4.6)
    titles = {"parses": "Whole parses", "leaves": "Single leaves"}
    for axes, (what, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1)
        for name, (first, *_) in ((name, few) for name, few in scores.items() if few):
            for when, style in _STYLES.items():
                bins = first["calibration"][what][f"bins_{when}"]
                x, y = [one["confidence"] for one in bins], [one["right"] for one in bins]
                label = f"{name}, {when} fitting"
                axes.plot(x, y, style, color=_OTHER_COLOURS[name], marker="o", markersize=3, label=label)
        _finish(axes, title=title, x="confidence", y="share right")
        axes.legend(fontsize=8, frameon=False)
    save(figure, path)


def draw_few_rows(curves: Mapping[tuple[str, str], Sequence[tuple[int, float]]], path: Path) -> None:
    """Draw EM against samples per intent and slot: by domain, and by parser."""
    domains = sorted({domain for domain, _ in curves})
    figure = new_figure(5 * len(domains), 4)
    for axes, domain in zip(figure.subplots(1, len(domains), squeeze=False)[0], domains, strict=True):
        for (other, name), points in curves.items():
            if other == domain:
                x, y = zip(*points, strict=True)
                axes.semilogx(x, y, color=_OTHER_COLOURS[name], marker="o", markersize=4, label=name)
        samples = sorted({n for (other, _), points in curves.items() if other == domain for n, _ in points})
        axes.set_xticks(samples, list(map(str, samples)))
        axes.minorticks_off()
        _finish(axes, title=domain, x="samples per intent and slot", y="EM, %")
        axes.legend(fontsize=8, frameon=False)
    save(figure, path)


def draw_merges(points: Mapping[int, Mapping[str, float]], path: Path) -> None:
    """Draw what each number of merges reaches and costs, a panel each."""
    figure = new_figure(11, 3.4)
    places = range(len(points))
    names = [("EM", "EM, %"), ("EM, unseen skeletons", "EM on unseen skeletons, %"), ("passes", "decoder passes")]
    for axes, (name, title) in zip(figure.subplots(1, 4), [*names, ("ms", "milliseconds")], strict=True):
        axes.plot(places, [point[name] for point in points.values()], color=COLOURS["treepiece"], marker="o")
        axes.set_xticks(places, [f"{n:,}" for n in points])
        _finish(axes, title=title, x="merges", y="")
    save(figure, path)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that needs no screen."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionError("drawing needs matplotlib, which is not installed: pip install '.[bench]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, format="png")


def _finish(axes: Axes, *, x: str, y: str, title: str = "") -> None:
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
