"""The sections on passes and vocabularies, on few rows of new domains, and on variants of the recipe."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from experiments.parts import Json
from experiments.plotting import KINDS, draw_few_rows, draw_passes
from experiments.report.markdown import NONE, number, percent, section, table
from experiments.report.results import Results

_PASSES = """\
Passes for the gold trees of the eval split: TreePiece {treepiece:.2f} per tree (one per unit, and one for the spans
where there is a leaf), autoregressive {ar:.2f}, non-autoregressive {nar:.2f}; {single:.1f} % of the trees are a single
unit. The paper counts the tokens of the logical form with RoBERTa's subword tokenizer; here they are those that the
autoregressive parser writes, so that its curve is the diagonal (`python -m experiments passes --help`)."""
_VOCABULARIES = """\
Learned on the train split, counted on the eval split; 600 merges unless stated otherwise. The paper has 2,153 units,
and less than 0.1 % of the trees of the test split cannot be encoded."""
_TIMES = """\
Training on the {trees:,} skeletons of the train split takes {train:.2f} s, and SentencePiece's unigram model takes
{sentencepiece:.2f} s for the same skeletons with one character for each label and bracket; encoding all of them
takes {encode:.3f} s and {sentencepiece_encode:.3f} s."""
_FEW_ROWS = """\
A model of the six other domains continues training with a few rows of a domain that it has never seen, the low-resource
splits of TOPv2 (SPIS: samples per intent and slot), and is scored in PyTorch on all eval rows of that domain. Where
there are several runs, with different seeds, the table has their mean and their range.

The best epoch was chosen on the validation rows of the same split. TOPv2 has taken those from its eval split, so the
scores on all eval rows flatter, the more so the larger the split. "Fresh" is the EM on the eval rows that were not
validated with: nothing was chosen on them, but they are fewer, and not drawn at random."""
_ABLATIONS = """\
TreePiece on {rows:,} rows of the train split for {epochs} epochs, scored on {scored:,} other rows of the train split
after the last epoch; one model each. Two EMs that differ by less than about {margin:.1f} points may differ by chance.
The recipe has compositional unit embeddings, label logits, a reranker, batches of 32, label smoothing 0.1, 600 merges
and no dropout; each variant differs in what its name says. Plain units have neither label logits nor compositional
embeddings. "Greedy" is without reranking, "unseen" the rows whose skeleton none of the rows learned from has. Options
that were removed since, because they did not pay, are marked."""


def passes(results: Results, figures: Path) -> str:
    """Return the section on the paper's Figure 3, after drawing it."""
    found = results.get("figure3")
    if found is None:
        return ""
    tokens, path = "as the autoregressive parser writes it", figures / "decoder-passes.png"
    draw_passes(found["by_length"], path, data="Gold trees of TOPv2 eval", tokens=tokens)
    text = _PASSES.format(
        treepiece=found["treepiece"], ar=found["ar"], nar=found["nar"], single=100 * found["single_unit"]
    )
    return section("Figure 3: decoder passes", text, f"![Decoder passes by length]({figures.name}/{path.name})")


def tokenizer(results: Results) -> str:
    """Return the section on vocabularies."""
    found = results.get("tokenizer")
    if found is None:
        return ""
    ways = {name: way for name, way in found["vocabularies"].items() if name != "train"}
    rows = [
        [
            name,
            f"{way['units']:,}",
            number(way["units_per_tree"], 3),
            f"{100 * way['unencodable_seen_labels'] / way['trees']:.2f}",
            f"{way['train_seconds']:.2f}",
        ]
        for name, way in ways.items()
    ]
    head = ["vocabulary", "units", "units per tree", "unencodable, %", "training, s"]
    times = found["times"]
    text = _TIMES.format(
        trees=found["vocabularies"]["train"]["trees"],
        train=times["train_seconds"],
        sentencepiece=times["sentencepiece_train_seconds"],
        encode=times["encode_seconds"],
        sentencepiece_encode=times["sentencepiece_encode_seconds"],
    )
    return section("Tokenizer", _VOCABULARIES, table(head, rows), text)


def few_rows(results: Results, figures: Path) -> str:
    """Return the section on low-resource splits, after drawing its figure."""
    found = [result for name, result in results.group("low-resource").items() if not name.endswith("-source")]
    if not found:
        return ""
    draw_few_rows(_curves(found), figures / "low-resource.png")
    plot = f"![EM against the number of samples]({figures.name}/low-resource.png)"
    return section("A few rows of a new domain", _FEW_ROWS, _few_rows_table(found), plot)


def _few_rows_table(found: Sequence[Json]) -> str:
    cells: dict[tuple[str, int], dict[str, list[Json]]] = defaultdict(lambda: defaultdict(list))
    for result in found:
        cells[result["domain"], result["spis"]][result["kind"]].append(result)
    kinds = [kind for kind in KINDS if any(kind in here for here in cells.values())]
    head = ["domain", "SPIS", "rows", "eval rows", "fresh rows"]
    head += [f"{KINDS[kind]} {score}" for kind in kinds for score in ("EM", "EM-S", "fresh EM")]
    rows = []
    for (domain, spis), here in sorted(cells.items()):
        first = next(iter(here.values()))[0]
        counts = first["rows"], first["scores"]["rows"], (first["scores"]["fresh"] or {"rows": 0})["rows"]
        scores = [cell for kind in kinds for cell in _few_scores(here[kind])]
        rows.append([domain, str(spis), *(f"{count:,}" for count in counts), *scores])
    return table(head, rows)


def _few_scores(results: Sequence[Json]) -> list[str]:
    scores = [result["scores"] for result in results]
    fresh = [one["fresh"]["em"] for one in scores if one["fresh"]]
    whole = [percent([one[name] for one in scores], 1) for name in ("em", "em_s")]
    return [*whole, percent(fresh, 1) if fresh or not scores else "no rows"]


def _curves(found: Sequence[Json]) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Return mean EM against samples per intent and slot, by domain and by the name of the parser."""
    points: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in sorted(found, key=lambda one: (list(KINDS).index(one["kind"]), int(one["spis"]))):
        points[result["domain"], KINDS[result["kind"]]][result["spis"]].append(100 * result["scores"]["em"])
    return {name: [(spis, fmean(values)) for spis, values in curve.items()] for name, curve in points.items()}


def ablations(results: Results) -> str:
    """Return the section on variants of the recipe."""
    found = list(results.group("ablations").values())
    head = ["", "EM, %", "EM-S, %", "greedy EM, %", "greedy EM unseen, %", "passes", "rows per second"]
    texts = []
    for rows, epochs, scored in sorted({(one["rows"], one["epochs"], one["scored_rows"]) for one in found}):
        same = [one for one in found if (one["rows"], one["epochs"], one["scored_rows"]) == (rows, epochs, scored)]
        lines = [
            [one["variant"], percent([one["em"]], 1), percent([one["em_s"]], 1), *_greedy(one)]
            for one in sorted(same, key=lambda one: float(one["em"]))
        ]
        margin = 100 * 1.96 * (2 * 0.25 / scored) ** 0.5  # two shares near a half, of so many rows each
        texts.append(_ABLATIONS.format(rows=rows, epochs=epochs, scored=scored, margin=margin))
        texts.append(table(head, lines))
    return section("What helps", *texts) if texts else ""


def _greedy(result: Json) -> list[str]:
    """Return what a variant reaches without reranking, if that was measured, and its speed."""
    greedy = result.get("greedy")
    cells = [NONE] * 3
    if greedy:
        unseen = [greedy["by_seen"]["unseen"]["em"]] if "unseen" in greedy["by_seen"] else []
        cells = [percent([greedy["em"]], 1), percent(unseen, 1), number(greedy["passes"])]
    return [*cells, f"{result['rows_per_second']:.0f}"]
