"""The sections on accuracy, from Table 1 to confidences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

import numpy as np

from experiments.parts import Json
from experiments.plotting import KINDS, draw_calibration
from experiments.report.markdown import listed, number, p_value, percent, section, spread, table
from experiments.report.results import DEFAULT, GREEDY, PAPER, Results, average_of, default_of, epochs_of
from experiments.report.speed import mean_time
from treepiece.evaluation.significance import PairedTest, paired_test

EXACT, NOT_PARSED = "=", "-"
_ENGINES = {"int8": "int8 on ONNX Runtime", "torch": "PyTorch"}
_DIFFERENCES = """\
The paper trains the RoBERTa-base encoder (12 layers, width 768) in batches of 256 for up to 100 epochs with early
stopping, chooses on the validation split, and reports the mean of 3 seeds on the test split; it does not say on which
processor its milliseconds were measured, or what ran the models. Here:

- Encoder: {encoder}.
- Budget: {budget}.
- Rows: the best epoch is chosen on rows held out from the train split. Scores are of the whole eval split, not of the
  test split; for the test split see [the bundled model](#the-bundled-model).
- Times: means over {rows:,} utterances of the eval split, one at a time, of graphs in 8 bits unless it says PyTorch.
  Processor and encoder differ from the paper's: compare ratios, not milliseconds."""
_GREEDY = """\
All three search greedily here, as in the paper. TreePiece as it parses by default, with reranking of low-confidence
parses, which the paper does not have, reaches EM {em} and EM-S {em_s}{times}: [ways to search](#ways-to-search)."""


def headline(results: Results) -> str:
    """Return the section on Table 1."""
    if not any(results.seeds(kind) for kind in KINDS):
        return ""
    texts = _table_1(results), _default_search(results), _ratios(results), _differences(results)
    return section("Table 1: quality and latency", *texts)


def _table_1(results: Results) -> str:
    def times(engine: str, what: str) -> dict[str, str]:
        return {kind: number(mean_time(results, kind, engine, what)) for kind in KINDS}

    def numbers(name: str, digits: int = 2, scale: float = 1.0) -> dict[str, str]:
        return {kind: spread(results.numbers(kind, name), digits, scale=scale) for kind in KINDS}

    rows: list[tuple[str, Mapping[str, str], Mapping[str, str]]] = [
        ("EM, %", {kind: f"{one.em:.2f}" for kind, one in PAPER.items()}, numbers("em", scale=100)),
        ("EM-S, %", {kind: f"{one.em_s:.2f}" for kind, one in PAPER.items()}, numbers("em_s", scale=100)),
        ("decoding, ms", {kind: f"{one.decoding:.0f}" for kind, one in PAPER.items()}, times("int8", "decoding")),
        ("inference, ms", {kind: f"{one.inference:.0f}" for kind, one in PAPER.items()}, times("int8", "full")),
        ("decoding in PyTorch, ms", {}, times("torch", "decoding")),
        ("inference in PyTorch, ms", {}, times("torch", "full")),
        ("decoder passes per tree", {}, numbers("passes")),
        ("outputs that are not a tree", {}, numbers("invalid", 0)),
        (
            "epochs",
            dict.fromkeys(KINDS, "up to 100"),
            {k: spread(list(map(epochs_of, results.models(k))), 0) for k in KINDS},
        ),
        ("models (seeds)", dict.fromkeys(KINDS, "3"), {k: str(len(results.seeds(k))) for k in KINDS}),
    ]
    head = ["", *(f"{name}, {whose}" for name in KINDS.values() for whose in ("paper", "here"))]
    return table(head, [[name, *(side.get(k, "") for k in KINDS for side in sides)] for name, *sides in rows])


def _default_search(results: Results) -> str:
    """Return what TreePiece reaches with reranking, which the paper does not have."""
    em, em_s = (results.numbers("treepiece", score, DEFAULT) for score in ("em", "em_s"))
    if not em:
        return ""
    decoding, full = (mean_time(results, "treepiece", "int8", what, "default") for what in ("decoding", "full"))
    times = f" (decoding {number(decoding)} ms, inference {number(full)} ms)" if full else ""
    return _GREEDY.format(em=percent(em), em_s=percent(em_s), times=times)


def _ratios(results: Results) -> str:
    """Return how much faster TreePiece is than the others, which does not depend on the processor as much."""
    pairs = {
        "autoregressive / TreePiece, decoding": ("ar", "treepiece", "decoding"),
        "autoregressive / TreePiece, inference": ("ar", "treepiece", "full"),
        "TreePiece / non-autoregressive, inference": ("treepiece", "nar", "full"),
    }
    lines = []
    for engine, name in _ENGINES.items():
        cells = []
        for text, (one, other, what) in pairs.items():
            above, below = (mean_time(results, kind, engine, what) for kind in (one, other))
            if above and below and below > 0:
                cells.append(f"{text} {above / below:.2f}")
        if cells:
            lines.append(f"- {name}: {'; '.join(cells)}.")
    ar, ours, nar = PAPER["ar"], PAPER["treepiece"], PAPER["nar"]
    paper = ar.decoding / ours.decoding, ar.inference / ours.inference, ours.inference / nar.inference
    if not lines:
        return ""
    return "\n".join(["Ratios of the means:", "", *lines, "- The paper: {:.2f}, {:.2f} and {:.2f}.".format(*paper)])


def _differences(results: Results) -> str:
    found = {str(model["recipe"].get("encoder")) for kind in KINDS for model in results.models(kind)}
    # Of an encoder that is a folder, its name and not where it is.
    names = sorted(PurePath(name).name if PurePath(name).is_absolute() else name for name in found)
    texts = {"minilm": "MiniLM-L6 (`minilm`: 6 layers, width 384)"}
    latency = results.get("latency")
    return _DIFFERENCES.format(
        encoder=listed([texts.get(name, f"`{name}`") for name in names]),
        budget=_budget(results),
        rows=latency["script"]["rows"] if latency else 0,
    )


def _budget(results: Results) -> str:
    """Return how long models were trained: the epochs of the recipe, and the one that was kept."""
    texts = []
    for kind, name in KINDS.items():
        for seed, model in zip(results.seeds(kind), results.models(kind), strict=True):
            recipe, epoch = model["recipe"], model["validation"].get("epoch", 0)
            earlier = epochs_of(model) - epoch
            before = f", after {earlier} of another run" if earlier else ""
            texts.append(
                f"{name}, seed {seed}: epoch {epoch} of {recipe.get('epochs')}{before}, in batches of "
                f"{recipe.get('batch_size')}{average_of(model)}"
            )
    return "; ".join(texts)


_BUNDLED = """\
The model in the package (`src/treepiece/bundled`, int8), as it parses by default. It was trained for {epochs}
epochs{average}; the models of Table 1 for as many as that table says.{invalid}"""
_TEST = """\
The test split was never used in development. Its scores were measured independently of it, on the model of commit
{commit} (`{command}`). The paper's encoder, RoBERTa-base, has twice as many layers of twice the width. The eval
split is a development set: models and recipes were compared on it often, so it flatters the model{gap}."""
_TEST_GROUPS = """\
On the test split, skeletons that occur in the train split reach EM {seen} and EM-S {seen_s}, the {n_unseen:,} rows with
other skeletons EM {unseen} and EM-S {unseen_s}; trees of depth {depths}; EM by domain: {domains}."""
_WAYS = """\
Ways to search, on the eval split. Milliseconds are those of one parse from subwords to skeleton and spans, the ways
taking turns on {rows} utterances."""


def bundled(results: Results) -> str:
    """Return the section on the model that comes with treepiece."""
    found, test = results.get("bundled"), results.get("bundled-test")
    if found is None:
        return ""
    scores, paper = default_of(found), PAPER["treepiece"]
    rows = [
        ["development set (eval)", f"{scores['rows']:,}", _with_interval(scores, "em"), _with_interval(scores, "em_s")]
    ]
    texts = []
    if test is not None:
        record = results.records["bundled-test"]
        rows = [
            ["**test**", f"{test['rows']:,}", f"**{100 * test['em']:.2f}**", f"**{100 * test['em_s']:.2f}**"],
            ["test, the paper (RoBERTa-base)", "", f"{paper.em:.2f}", f"{paper.em_s:.2f}"],
            *rows,
        ]
        same = test["manifest"] == found["manifest"]
        gap = f", by {100 * (scores['em'] - test['em']):.1f} points of EM" if same else ""
        texts = [
            _TEST.format(commit=record.commit, command=record.command, gap=gap),
            _test_groups(test),
        ]
    invalid = f" {scores['invalid']} outputs on the eval split are not a tree."
    text = _BUNDLED.format(epochs=epochs_of(found), average=average_of(found), invalid=invalid)
    n_rows = max(time["rows"] for time in found["times"].values())
    return section(
        "The bundled model",
        text,
        table(["", "rows", "EM, %", "EM-S, %"], rows),
        *texts,
        _WAYS.format(rows=n_rows),
        _ways([found]),
    )


def _with_interval(scores: Json, name: str) -> str:
    low, high = scores[f"{name}_interval"]
    return f"{100 * scores[name]:.2f} ({100 * low:.2f} to {100 * high:.2f})"


def _test_groups(test: Json) -> str:
    seen, unseen = test["by_seen"]["seen"], test["by_seen"]["unseen"]
    return _TEST_GROUPS.format(
        seen=f"{100 * seen['em']:.1f}",
        seen_s=f"{100 * seen['em_s']:.1f}",
        n_unseen=unseen["rows"],
        unseen=f"{100 * unseen['em']:.1f}",
        unseen_s=f"{100 * unseen['em_s']:.1f}",
        depths=listed([f"{depth} reach EM {100 * group['em']:.1f}" for depth, group in test["by_depth"].items()]),
        domains=", ".join(f"{name} {100 * group['em']:.1f}" for name, group in test["by_domain"].items()),
    )


def compared(results: Results) -> str:
    """Return the section on the paired tests."""
    rows = [
        [
            name,
            f"{100 * test.difference:+.2f}",
            f"{100 * test.low:+.2f} to {100 * test.high:+.2f}",
            p_value(test.p_value),
            f"{test.only_first:,}",
            f"{test.only_second:,}",
        ]
        for name, test in _tests(results)
    ]
    if not rows:
        return ""
    head = ["", "EM, points", "95 % interval", "p (McNemar)", "only the first right", "only the second right"]
    text = "Each line compares two models on the same rows of the eval split: how much better the first is."
    return section("Row by row", text, table(head, rows))


def _tests(results: Results) -> Iterator[tuple[str, PairedTest]]:
    greedy, default = results.scores("treepiece"), results.defaults("treepiece")
    ways = {"": greedy} | ({", reranking": default} if default != greedy else {})
    for other in ("ar", "nar"):
        for way, scores in ways.items():
            for first, second, ours, theirs in zip(
                results.seeds("treepiece"), results.seeds(other), scores, results.scores(other), strict=False
            ):
                name = f"TreePiece (seed {first}{way}) against {KINDS[other]} (seed {second})"
                yield name, compare_rows(ours["row_outcomes"], theirs["row_outcomes"])


def compare_rows(first: str, second: str) -> PairedTest:
    """Return the paired test of two parsers, over the rows that both could read.

    >>> compare_rows("==.-", "=..=").difference
    0.3333333333333333
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if NOT_PARSED not in (a, b)]
    hits = np.array([(a == EXACT, b == EXACT) for a, b in pairs], bool).reshape(-1, 2)
    return paired_test(hits[:, 0], hits[:, 1])


_GROUPINGS = {"by_domain": "domain", "by_depth": "depth of the tree", "by_seen": "skeleton in training"}


def groups(results: Results) -> str:
    """Return the section on groups of rows."""
    if not results.group_names("by_domain"):
        return ""
    seeds = ", ".join(f"{len(results.seeds(kind))} of {name}" for kind, name in KINDS.items())
    tables = [_group_table(results, grouping, title) for grouping, title in _GROUPINGS.items()]
    return section("By domain, depth and novelty", f"In percent; models: {seeds}.", *tables)


def _group_table(results: Results, grouping: str, title: str) -> str:
    head = [title, "rows"] + [f"{name} {score}" for name in KINDS.values() for score in ("EM", "EM-S")]
    columns = [(kind, score) for kind in KINDS for score in ("em", "em_s")]
    rows = [
        [name, f"{n:,}", *(percent(results.numbers_of_group(kind, grouping, name, one), 1) for kind, one in columns)]
        for name, n in results.group_names(grouping).items()
    ]
    return table(head, rows)


_SEARCHING = """\
The TreePiece parser with int8 graphs on the whole eval split. Greedy search never reranks; by default a parse of low
confidence is reranked; "always" reranks every parse. "In the beam" is the share of rows for which one of the five best
candidates is right: what a perfect choice among them would reach; where only one candidate is asked for, it is EM.
Milliseconds are those of one parse from subwords to skeleton and spans, the ways taking turns on {rows} utterances."""
_WRITTEN = """\
The reranker is the decoder of the autoregressive parser, trained with the units on the same encoder. Made to write
frames by itself, greedily and token by token in PyTorch, it reaches EM {em} and EM-S {em_s} in {passes} passes: this is
what an autoregressive parser makes of the same encoder, rows and epochs."""


def searching(results: Results) -> str:
    """Return the section on the ways to search."""
    models = results.models("treepiece")
    if not models:
        return ""
    n_rows = max(time["rows"] for model in models for time in model["times"].values())
    written = [model["reranker_writes"] for model in models if model.get("reranker_writes")]
    em, em_s = (percent([scores[name] for scores in written]) for name in ("em", "em_s"))
    passes = spread([scores["passes"] for scores in written])
    text = _WRITTEN.format(em=em, em_s=em_s, passes=passes) if written else ""
    return section("Ways to search", _SEARCHING.format(rows=n_rows), _ways(models), text)


def _ways(models: Sequence[Json]) -> str:
    """Return a table of the ways to search with int8 graphs."""
    rows = []
    for name in dict.fromkeys(name for model in models for name in model["settings"] if name.startswith("int8 ")):
        way = name.removeprefix("int8 ")
        scores = [model["settings"][name] for model in models if name in model["settings"]]
        times = [model["times"][way] for model in models if way in model["times"]]
        beams = {score["beam"] for score in scores if "beam" in score}
        rows.append(
            [
                f"{way}, beam {listed(sorted(beams))}" if beams else way,
                *(percent([score[what] for score in scores]) for what in ("em", "em_s", "in_beam")),
                spread([score["passes"] for score in scores]),
                *(spread([time[what] for time in times]) for what in ("median", "mean")),
                str(len(times)),
            ]
        )
    head = ["", "EM, %", "EM-S, %", "in the beam, %", "passes", "ms, median", "ms, mean", "models"]
    return table(head, rows)


def precisions(results: Results) -> str:
    """Return the section on 8-bit weights."""
    rows = []
    for kind, name in KINDS.items():
        for seed, model in zip(results.seeds(kind), results.models(kind), strict=True):
            small, exact = (model["settings"].get(setting) for setting in (GREEDY, "float greedy"))
            if not small or not exact:
                continue
            test = compare_rows(small["row_outcomes"], exact["row_outcomes"])
            parity = model["export"]["parity"]["int8"]
            rows.append(
                [
                    f"{name}, seed {seed}",
                    percent([exact["em"]]),
                    percent([small["em"]]),
                    f"{100 * test.difference:+.2f} ({100 * test.low:+.2f} to {100 * test.high:+.2f})",
                    f"{test.only_first:,} and {test.only_second:,}",
                    percent([parity["same_trees"] / max(1, parity["rows"])]),
                ]
            )
    if not rows:
        return ""
    head = ["", "EM in float", "EM in int8", "difference", "only int8, only float right", "same tree as PyTorch, %"]
    text = "The last column is of rows held out from the train split, the others are of the eval split."
    return section("8 bits", text, table(head, rows))


_CONFIDENCE = """\
If p is the probability of a parse, its confidence is p to the power of 1 / temperature. The temperature was fitted on
rows held out from the train split; the expected calibration errors (15 bins) are those of the eval split, int8 graphs,
default search."""


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
        return ""
    draw_calibration({name: results.defaults(kind) for kind, name in KINDS.items()}, figures / "calibration.png")
    head = ["", "temperature", "error before", "error after", "models"]
    plot = f"![Confidence against the share of right answers]({figures.name}/calibration.png)"
    return section("Confidence", _CONFIDENCE, table(head, rows), plot)
