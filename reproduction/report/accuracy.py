"""The sections on accuracy: parsers against each other, groups of rows, and 8 bits against single precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reproduction.report.markdown import not_run, p_value, percent, section, table
from reproduction.report.results import KINDS, SHIPPED, Results
from treepiece.evaluation.bootstrap import PairedTest, paired_test

EXACT, NOT_PARSED = "=", "-"
_GROUPINGS = {"by_domain": "domain", "by_depth": "depth of the tree", "by_seen": "skeleton in training"}


def compared(results: Results) -> str:
    """Return the section on the paired tests."""
    tests = list(_tests(results))
    if not tests:
        return section("Row by row", not_run("scores"))
    head = ["", "EM, points", "95 % interval", "p (McNemar)", "right here only", "right there only"]
    rows = [
        [
            name,
            f"{100 * test.difference:+.2f}",
            f"{100 * test.low:+.2f} to {100 * test.high:+.2f}",
            p_value(test.p_value),
            f"{test.only_first:,}",
            f"{test.only_second:,}",
        ]
        for name, test in tests
    ]
    text = "Each line compares two models on the same rows of the eval split, and says how much better the first is."
    return section("Row by row", text, table(head, rows))


def _tests(results: Results) -> Iterator[tuple[str, PairedTest]]:
    greedy, default = results.scores("treepiece"), results.defaults("treepiece")
    ways = {"": greedy} | ({", with second looks": default} if default != greedy else {})
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


def groups(results: Results) -> str:
    """Return the section on groups of rows."""
    if not results.group_names("by_domain"):
        return section("By domain, depth and novelty", not_run("scores"))
    seeds = ", ".join(f"{len(results.seeds(kind))} of {name}" for kind, name in KINDS.items())
    tables = [_group_table(results, grouping, title) for grouping, title in _GROUPINGS.items()]
    return section("By domain, depth and novelty", f"In percent; models: {seeds}.", *tables)


def _group_table(results: Results, grouping: str, title: str) -> str:
    head = [title, "rows"] + [f"{name} {score}" for name in KINDS.values() for score in ("EM", "EM-S")]
    rows = [
        [name, f"{n_rows:,}"]
        + [percent(results.parts_of(kind, grouping, name, score), 1) for kind in KINDS for score in ("em", "em_s")]
        for name, n_rows in results.group_names(grouping).items()
    ]
    return table(head, rows)


def precisions(results: Results) -> str:
    """Return the section on 8-bit weights."""
    rows = []
    for kind, name in KINDS.items():
        for seed, model in zip(results.seeds(kind), results.models(kind), strict=True):
            small, exact = (model["settings"].get(setting) for setting in (SHIPPED, "float greedy"))
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
        return section("8 bits", not_run("scores"))
    head = ["", "EM in float", "EM in int8", "difference", "only int8, only float right", "same tree as PyTorch, %"]
    text = "The last column is of rows held out from the train split, the others are of the eval split."
    return section("8 bits", text, table(head, rows))
