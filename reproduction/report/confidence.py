"""The section on calibration."""

from __future__ import annotations

from pathlib import Path

from reproduction.report.figures import draw_calibration
from reproduction.report.markdown import not_run, section, spread, table
from reproduction.report.results import KINDS, Results

FIGURE = "calibration.png"
_TEXT = """\
With p the probability that a model gives its answer, its confidence is p to the power of 1 / temperature. The
temperature was fitted on rows held out from the train split; the expected calibration errors (15 bins) are those of
the eval split, int8 graphs, as a parser searches by default."""


def confidence(results: Results, figures: Path) -> str:
    """Return the section on confidences, after drawing its figure."""
    rows = []
    for kind, name in KINDS.items():
        for what in ("parses", "leaves"):
            found = [scores["calibration"][what] for scores in results.defaults(kind)]
            if found:
                columns = [[one[key] for one in found] for key in ("temperature", "error_before", "error_after")]
                rows.append([f"{name}, {what}", *(spread(column, 3) for column in columns), str(len(found))])
    if not rows:
        return section("Confidence", not_run("scores"))
    draw_calibration({name: results.defaults(kind) for kind, name in KINDS.items()}, figures / FIGURE)
    head = ["", "temperature", "error before", "error after", "models"]
    plot = f"![Confidence against the share of right answers]({figures.name}/{FIGURE})"
    return section("Confidence", _TEXT, table(head, rows), plot)
