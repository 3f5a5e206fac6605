"""Prints and draws what the latency benchmark has measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from timing import Milliseconds

from treepiece.definition import ModelKind

COLOURS = {ModelKind.TREEPIECE: "#0072B2", ModelKind.AR: "#D55E00", ModelKind.NAR: "#555555"}
NAMES = {ModelKind.TREEPIECE: "TreePiece", ModelKind.AR: "AR", ModelKind.NAR: "NAR"}


@dataclass(frozen=True)
class Bar:
    """One parser in a plot: its label, its kind, and its rows."""

    label: str
    kind: ModelKind
    encoder: Milliseconds
    full: Milliseconds


def show(rows: Sequence[Mapping[str, object]], numbers: Mapping[str, float]) -> None:
    """Print a table, with the decoder passes where they are known, and numbers by name."""
    first, *_ = rows[0]
    columns = [(part, key) for part in ("decoding", "full") for key in ("median", "p95")]
    above = f"{'decoding, ms':>24}{'full, ms':>24}"
    if any("passes" in row for row in rows):
        columns.append(("passes", "mean"))
        above += f"{'passes':>12}"
    print(f"{'':36}{above}")
    print(f"{first:14}{'engine':8}{'system':14}{''.join(f'{key:>12}' for _, key in columns)}")
    for row in rows:
        cells = [_cell(row, part, key) for part, key in columns]
        print(f"{row[first]:14}{row['engine']:8}{row['system']:14}{''.join(cells)}")
    print()
    for name, value in numbers.items():
        print(f"{name:66}{value:10.3f}")


def _cell(row: Mapping[str, object], part: str, key: str) -> str:
    return f"{cast(Mapping[str, float], row[part])[key]:12.2f}" if part in row else f"{'-':>12}"


def draw(panels: Mapping[str, Sequence[Bar]], n_columns: int, file: str) -> None:
    """Save a plot: the time of a parse, encoder and decoding, a panel for each title."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    n_rows = -(-len(panels) // n_columns)
    size = 10, 2.5 * max(n_rows, 1.4)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", sharey="row", squeeze=False)
    for axis, (title, bars) in zip(axes.flat, panels.items(), strict=False):
        for place, bar in enumerate(bars):
            encoder, full = float(np.median(bar.encoder)), float(np.median(bar.full))
            axis.bar(place, encoder, color="#cccccc")
            axis.bar(place, full - encoder, bottom=encoder, color=COLOURS[bar.kind])
        axis.set_xticks(range(len(bars)), [bar.label for bar in bars], fontsize=10 if len(bars) <= 3 else 7)
        axis.set_title(title, fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel("milliseconds (median)")
    figure.suptitle("One parse: encoder (grey) and decoding (colour); TOPv2 eval, batch 1, two threads")
    figure.savefig(file, dpi=150)
    plt.close(figure)
