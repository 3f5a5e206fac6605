"""The drawings of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reproduction.scripts import load_script
from reproduction.store import Json
from treepiece.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"TreePiece": "#0072b2", "AR": "#d55e00", "NAR": "#595959"}  # apart for colour-blind readers too
_STYLES = {"before": ":", "after": "-"}


def draw_calibration(scores: Mapping[str, Sequence[Json]], path: Path) -> None:
    """Draw confidence against the share of right answers: the first model of each kind, before and after fitting."""
    figure = new_figure(10, 4.6)
    for axes, what in zip(figure.subplots(1, 2), ("parses", "leaves"), strict=True):
        axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1)
        for name, (first, *_) in ((name, few) for name, few in scores.items() if few):
            for when, style in _STYLES.items():
                bins = first["calibration"][what][f"bins_{when}"]
                x, y = [one["confidence"] for one in bins], [one["right"] for one in bins]
                axes.plot(x, y, style, color=COLOURS[name], marker="o", markersize=3, label=f"{name}, {when} fitting")
        _finish(axes, title=f"Whole {what}" if what == "parses" else "Single leaves", x="confidence", y="share right")
        axes.legend(fontsize=8, frameon=False)
    save(figure, path)


def draw_few_rows(curves: Mapping[tuple[str, str], Sequence[tuple[int, float]]], path: Path) -> None:
    """Draw EM against samples per intent and slot: by domain, and by parser."""
    domains = sorted({domain for domain, _ in curves})
    figure = new_figure(5 * len(domains), 4)
    for axes, domain in zip(figure.subplots(1, len(domains), squeeze=False)[0], domains, strict=True):
        for (other, name), points in curves.items():
            if other == domain:
                colour = COLOURS[name.partition(",")[0]]
                style = "--" if "," in name else "-"
                axes.semilogx(*zip(*points, strict=True), style, color=colour, marker="o", markersize=4, label=name)
        samples = sorted({n for (other, _), points in curves.items() if other == domain for n, _ in points})
        axes.set_xticks(samples, list(map(str, samples)))
        axes.minorticks_off()
        _finish(axes, title=domain, x="samples per intent and slot", y="EM, %")
        axes.legend(fontsize=8, frameon=False)
    save(figure, path)


def draw_passes(by_length: Mapping[str, Sequence[Json]], path: Path) -> None:
    """Draw the paper's Figure 3, as the script that counts passes draws it."""
    steps = load_script("steps")
    figure = new_figure(8, 5)
    curves = {name: [steps.Point(**point) for point in points] for name, points in by_length.items()}
    steps.draw(figure, curves, data="Gold trees of TOPv2 eval", tokens="as the autoregressive parser writes it")
    save(figure, path)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that needs no screen."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionError("the report draws with matplotlib, which is not installed: pip install '.[bench]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, in a folder that is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, format="png")


def _finish(axes: Axes, *, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
