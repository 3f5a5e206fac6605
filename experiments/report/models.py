"""The sections on what our extensions are worth, on the number of merges, and on the search for learning rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.parts import Json
from experiments.plotting import KINDS, draw_merges
from experiments.report.markdown import NONE, number, percent, section, spread, table
from experiments.report.results import DEFAULT, GREEDY, Results
from experiments.variants import EXTENSIONS, MERGES_BASE

_EXTENSIONS = """\
The model of the paper, and our extensions one by one: each line has those of the lines above it too. All have the
budget of Table 1, and search greedily unless the line says that they rerank. Whole units are whole subtrees: none keeps
some children and leaves others open ([why](tokenizer.md#which-vocabulary)). "Unseen" are the rows whose skeleton the
train split does not have. Milliseconds are those of one parse from subwords to skeleton and spans, int8, on 200
utterances; millions of parameters include the encoder's 22.6, of which word embeddings, 11.7, are not trained. Rows per
second are those of training."""
_NAMES = {
    "placeholder-label": "+ label of the open placeholder",
    "compositional": "+ compositional embeddings",
    "label-logits": "+ label logits",
    "reranker": "+ autoregressive loss on the encoder",
    "whole-units": "+ whole units",
}
_RERANKING = "{}, reranking low-confidence parses"
_MERGES = """\
With more merges, units are larger: fewer passes, but more units that training saw rarely. TreePiece with the label of
the open placeholder, compositional embeddings and label logits; the budget of Table 1, one model each, greedy search,
int8, eval split."""
_RATES = """\
For each module a third of its rate and three times its rate, one module after the other, in runs on {rows:,} rows of
the train split for {epochs} epochs, scored on {scored:,} other rows of the train split. Small runs are too short to
choose rates for long ones: the best rate of AR's decoder, three times that of its recipe, was worse with all rows and
four epochs. So the recipes keep the rates that the search begins with."""


def extensions(results: Results) -> str:
    """Return the section on extensions."""
    found = {name: results.family(f"extensions-{name}") for name in EXTENSIONS}
    if not any(models for models, _ in found.values()):
        return ""
    lines = [_line("TreePiece of the paper", *results.table_1("treepiece"), GREEDY)]
    for name, models in found.items():
        if models[0]:
            lines.append(_line(_NAMES[name], *models, GREEDY))
        if any(DEFAULT in model["settings"] for model in models[0]):
            lines.append(_line(_RERANKING.format(_NAMES[name]), *models, DEFAULT))
    head = ["", "EM, %", "EM-S, %", "EM unseen, %", "ms, mean", "ms, p95", "parameters, M", "rows per second", "models"]
    return section("Extensions", _EXTENSIONS, table(head, lines))


def _line(name: str, scored: Sequence[Json], trained: Sequence[Json], setting: str) -> list[str]:
    models = [model for model in scored if setting in model["settings"]]
    scores = [model["settings"][setting] for model in models]
    times = [model["times"][setting.removeprefix("int8 ")] for model in models]
    sizes = [model["parameters"] / 1e6 for model in trained if model.get("parameters")]
    speeds = [model["rows_per_second"] for model in trained if model.get("rows_per_second")]
    return [
        name,
        *(percent([score[what] for score in scores]) for what in ("em", "em_s")),
        percent([score["by_seen"]["unseen"]["em"] for score in scores], 1),
        *(spread([time[what] for time in times]) for what in ("mean", "p95")),
        spread(sizes[:1], 1),
        spread(speeds[:1], 0),
        str(len(scores)),
    ]


def merges(results: Results, figures: Path) -> str:
    """Return the section on the number of merges, after drawing its figure."""
    found = _by_merges(results)
    if len(found) < 2:
        return ""
    rows = []
    for n, model in sorted(found.items()):
        scores, time = model["settings"][GREEDY], model["times"]["greedy"]
        shares = scores["em"], scores["em_s"], scores["by_seen"]["unseen"]["em"]
        units = model["units"] if model.get("units") else None
        rows.append(
            [
                f"{n:,}",
                NONE if units is None else f"{units:,}",
                *(percent([share]) for share in shares),
                number(scores["passes"]),
                *(number(time[what]) for what in ("mean", "p95")),
            ]
        )
    draw_merges({n: _point(model) for n, model in sorted(found.items())}, figures / "merges.png")
    head = ["merges", "units", "EM, %", "EM-S, %", "EM unseen, %", "passes", "ms, mean", "ms, p95"]
    plot = f"![EM and passes against the number of merges]({figures.name}/merges.png)"
    return section("The number of merges", _MERGES, table(head, rows), plot)


def _by_merges(results: Results) -> dict[int, Json]:
    found = {}
    for name in results.records:
        family, _, step = name.rpartition("-")
        is_base = family == f"extensions-{MERGES_BASE}-0"
        if step == "scores" and (family.startswith("merges-") or is_base):
            model = results.records[name].result
            trained = results.get(f"{family}-train") or {}
            merges = model["recipe"].get("tokenizer", {}).get("merges")
            found[int(merges)] = {**model, "units": trained.get("units")}
    return found


def _point(model: Json) -> Mapping[str, float]:
    scores = model["settings"][GREEDY]
    return {
        "EM": 100 * scores["em"],
        "EM, unseen skeletons": 100 * scores["by_seen"]["unseen"]["em"],
        "passes": scores["passes"],
        "ms": model["times"]["greedy"]["mean"],
    }


def rates(results: Results) -> str:
    """Return the section on learning rates."""
    found = [results.get(f"rates-{kind}") for kind in KINDS]
    searches = [one for one in found if one]
    if not searches:
        return ""
    rows = [
        [
            KINDS[one["kind"]],
            ", ".join(f"{module} {rate:g}" for module, rate in run["rates"].items()),
            percent([run["em"]]),
            "best" if run["rates"] == one["best"] else "",
        ]
        for one in searches
        for run in one["runs"]
    ]
    first = searches[0]
    text = _RATES.format(rows=first["rows"], epochs=first["epochs"], scored=first["scored_rows"])
    return section("Learning rates", text, table(["", "learning rates", "EM, %", ""], rows))
