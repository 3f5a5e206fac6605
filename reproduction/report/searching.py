"""The section on ways to search."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.report.markdown import not_run, percent, section, spread, table
from reproduction.report.results import Results
from reproduction.store import Json

_INT8 = "int8 "
_TEXT = """\
The TreePiece parser with int8 graphs on the whole eval split. "In the beam" is the share of rows for which one of
the candidates is right: what a perfect choice among them would reach. Milliseconds are those of one parse from
subwords to skeleton and spans, the ways taking turns on {rows} utterances. Where a model has a ranker of its own,
"beam 5, ranked" is with its word on all candidates, and "ranked in doubt" with its word on those of the trees that
greedy search is not sure of. "Judged" is with the word of a judge, if there is one, after the ranker's. What a
parser does by default is the last of those in doubt."""
_WRITTEN = """\
The judge is the decoder of the autoregressive parser, trained beside the units on the same encoder. Made to write
frames by itself, greedily and token by token in PyTorch, it reaches EM {em} and EM-S {em_s} in {passes} passes: this is
what an autoregressive parser makes of the same encoder, rows and epochs."""


def searching(results: Results) -> str:
    """Return the section on greedy search and beams."""
    models = results.models("treepiece")
    if not any(model["settings"] for model in models):
        return section("Ways to search", not_run("scores-treepiece"))
    n_rows = max(time["rows"] for model in models for time in model["times"].values())
    return section("Ways to search", _TEXT.format(rows=n_rows), ways(models), _written(models))


def ways(models: Sequence[Json]) -> str:
    """Return a table of the ways to search with int8 graphs."""
    names = dict.fromkeys(name for model in models for name in model["settings"] if name.startswith(_INT8))
    rows = []
    for name in names:
        way = name.removeprefix(_INT8)
        scores = [model["settings"][name] for model in models if name in model["settings"]]
        times = [model["times"][way] for model in models if way in model["times"]]
        rows.append(
            [
                way,
                *(percent([score[what] for score in scores]) for what in ("em", "em_s", "in_beam")),
                spread([score["passes"] for score in scores]),
                *(spread([time[what] for time in times]) for what in ("median", "mean")),
                str(len(times)),
            ]
        )
    head = ["", "EM, %", "EM-S, %", "in the beam, %", "passes", "ms, median", "ms, mean", "models"]
    return table(head, rows)


def _written(models: Sequence[Json]) -> str:
    """Return what is to be said of judges that write, if any did."""
    found = [model["judge_writes"] for model in models if model.get("judge_writes")]
    if not found:
        return ""
    em, em_s = (percent([scores[name] for scores in found]) for name in ("em", "em_s"))
    return _WRITTEN.format(em=em, em_s=em_s, passes=spread([scores["passes"] for scores in found]))
