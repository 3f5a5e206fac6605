"""The section on the model that comes with treepiece."""

from __future__ import annotations

from reproduction.inside import INSIDE
from reproduction.report.markdown import not_run, section
from reproduction.report.results import Results, default_of, epochs_of, mixed_with
from reproduction.report.searching import ways

_TITLE = "The model inside"
_TEXT = """\
The files that come with treepiece (`src/treepiece/bundled`), as they are, on the whole eval split: **EM {em}** (95 %
interval {low} to {high}) and EM-S {em_s} as they parse by default, {invalid} outputs that are no tree. They were
trained for {epochs} epochs{mixed}; the models of the table above, for as many as it says. Milliseconds are those of one
parse from subwords to skeleton and spans, the ways taking turns on {rows} utterances."""


def inside(results: Results) -> str:
    """Return the section."""
    found = results.get(INSIDE)
    if found is None:
        return section(_TITLE, not_run(INSIDE))
    scores = default_of(found)
    low, high = scores["em_interval"]
    text = _TEXT.format(
        em=f"{100 * scores['em']:.2f}",
        em_s=f"{100 * scores['em_s']:.2f}",
        low=f"{100 * low:.2f}",
        high=f"{100 * high:.2f}",
        invalid=scores["invalid"],
        epochs=epochs_of(found),
        mixed=mixed_with(found),
        rows=max(time["rows"] for time in found["times"].values()),
    )
    return section(_TITLE, text, ways([found]))
