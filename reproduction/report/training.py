"""The sections on what was trained beside the main models: a few rows of new domains, and variants of the recipe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from reproduction.report.figures import draw_few_rows
from reproduction.report.markdown import NOT_RUN, listed, not_run, percent, section, table
from reproduction.report.results import KINDS, Results
from reproduction.store import Json

FIGURE = "low-resource.png"
Start = tuple[str, bool]
"""The kind of a parser, and whether it starts from the other domains."""
_FEW_ROWS = """\
A model of the six other domains goes on with a few rows of a domain that it has never seen, the low-resource splits of
TOPv2 (SPIS: samples per intent and slot), and is scored in PyTorch on all eval rows of that domain. One model each.
{scratch}

Epochs and learning rates (the recipe's, times {rates}) were chosen on the validation rows of the same split. TOPv2 has
taken those from its eval split, so the scores on all eval rows flatter, the more so the larger the split. "Fresh" is
the EM on the eval rows that were not validated with: nothing was chosen on them, but they are fewer, and not drawn at
random."""
_SCRATCH = '"From scratch" starts from the encoder alone, without the other domains.'
_ABLATIONS = """\
TreePiece on {rows:,} rows of the train split for {epochs} epochs, scored on {scored:,} other rows of the train
split after the last epoch; one model each. Two EMs that differ by less than about {margin:.1f} points may differ by
chance. The recipe has unit embeddings that are composed, hints, a judge, batches of 32, label smoothing 0.1 and 600
merges, and neither a ranker nor dropout; each variant differs in what its name says. Plain units have neither hints nor
composed embeddings."""


def few_rows(results: Results, figures: Path) -> str:
    """Return the section on low-resource splits, after drawing its figure."""
    found = [result for name, result in results.group("low-resource").items() if not name.endswith("-source")]
    if not found:
        return section("A few rows of a new domain", not_run("low-resource"))
    draw_few_rows(_curves(found), figures / FIGURE)
    rates = sorted({one["rate"] for result in found for one in result["tried"]}, reverse=True)
    has_scratch = any(not result["from_source"] for result in found)
    text = _FEW_ROWS.format(rates=listed(rates), scratch=_SCRATCH if has_scratch else "")
    plot = f"![EM against the number of samples]({figures.name}/{FIGURE})"
    return section("A few rows of a new domain", text, _few_rows_table(found), plot)


def _few_rows_table(found: Sequence[Json]) -> str:
    cells: dict[tuple[str, int], dict[Start, Json]] = defaultdict(dict)
    for result in found:
        cells[result["domain"], result["spis"]][result["kind"], result["from_source"]] = result
    starts = sorted({start for here in cells.values() for start in here}, key=_order)
    head = ["domain", "SPIS", "rows", "eval rows", "fresh rows"]
    head += [f"{_name(*start)} {score}" for start in starts for score in ("EM", "EM-S", "fresh EM")]
    rows = []
    for (domain, spis), here in sorted(cells.items()):
        first = next(iter(here.values()))
        counts = first["rows"], first["scores"]["rows"], (first["scores"]["fresh"] or {"rows": 0})["rows"]
        scores = [cell for start in starts for cell in _few_scores(here.get(start))]
        rows.append([domain, str(spis), *(f"{count:,}" for count in counts), *scores])
    return table(head, rows)


def _few_scores(result: Json | None) -> list[str]:
    if result is None:
        return [NOT_RUN] * 3
    scores = result["scores"]
    fresh = percent([scores["fresh"]["em"]], 1) if scores["fresh"] else "no rows"
    return [percent([scores["em"]], 1), percent([scores["em_s"]], 1), fresh]


def _curves(found: Sequence[Json]) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Return EM against samples per intent and slot, by domain and by the name of the parser."""
    curves: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for result in sorted(found, key=lambda one: (*_order((one["kind"], one["from_source"])), int(one["spis"]))):
        name = _name(result["kind"], result["from_source"])
        curves[result["domain"], name].append((result["spis"], 100 * result["scores"]["em"]))
    return curves


def _order(start: Start) -> tuple[bool, int]:
    kind, from_source = start
    return not from_source, list(KINDS).index(kind)


def _name(kind: str, from_source: bool) -> str:
    return KINDS[kind] if from_source else f"{KINDS[kind]}, from scratch"


def ablations(results: Results) -> str:
    """Return the section on variants of the recipe."""
    found = list(results.group("ablations").values())
    if not found:
        return section("What helps", not_run("ablations"))
    texts = []
    for rows, epochs, scored in sorted({(one["rows"], one["epochs"], one["scored_rows"]) for one in found}):
        same = [one for one in found if (one["rows"], one["epochs"], one["scored_rows"]) == (rows, epochs, scored)]
        lines = [
            [one["variant"], percent([one["em"]], 1), percent([one["em_s"]], 1), f"{one['rows_per_second']:.0f}"]
            for one in sorted(same, key=lambda one: float(one["em"]))
        ]
        margin = 100 * 1.96 * (2 * 0.25 / scored) ** 0.5  # two shares near a half, of so many rows each
        texts.append(_ABLATIONS.format(rows=rows, epochs=epochs, scored=scored, margin=margin))
        texts.append(table(["", "EM, %", "EM-S, %", "rows a second"], lines))
    return section("What helps", *texts)
