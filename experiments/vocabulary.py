"""How ways to train the tokenizer compare on TOPv2, as a table in Markdown.

    python -m experiments vocabulary [--readings] [--json]

The first line says how large and repetitive the train split is. Vocabularies are learned on the train split and
counted on the eval split. A tree with a label that train does not have (two of the 17,160) cannot be encoded by any of
them and is left out of the last column. With --json there are also the seconds that each training took.

--readings compares other readings of the paper, whose expansion has 2,153 units: without samples (K0 = 0) and with.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.topv2 import add_topv2, skeletons_of_split
from treepiece import Node, TokenizerConfig, TreePieceTokenizer
from treepiece.tokenizer.corpus import Forest
from treepiece.tokenizer.coverage import TokenizerScores, evaluate_tokenizer
from treepiece.tokenizer.em import EmMethod
from treepiece.tokenizer.learning import Expansion


def corpus_statistics(skeletons: list[Node]) -> dict[str, int]:
    """Return how large and how repetitive a corpus is."""
    distinct = set(skeletons)
    labels = {label: number for number, label in enumerate(sorted({n.label for t in distinct for n in t.nodes()}))}
    forest = Forest(labels)
    for tree in distinct:
        forest.add(tree)
    parents = {label for label, children in zip(forest.labels, forest.children, strict=True) if children}
    return {
        "trees": len(skeletons),
        "nodes": sum(tree.n_nodes for tree in skeletons),
        "distinct_trees": len(distinct),
        "distinct_subtrees": len(forest.labels),
        "most_nodes": max(tree.n_nodes for tree in distinct),
        "most_children": max(map(len, forest.children)),
        "labels": len(labels),
        "labels_without_children": len(labels) - len(parents),
    }


WAYS = {
    "paper, no sampling": TokenizerConfig(expansion=Expansion.PAPER, samples=0),
    "paper, K0 = 10, theta0 = 0.15": TokenizerConfig(expansion=Expansion.PAPER),
    "default (hard EM)": TokenizerConfig(),
    "default, sampled EM": TokenizerConfig(em=EmMethod.SAMPLED),
    "default, exact EM": TokenizerConfig(em=EmMethod.EXACT),
    "whole": TokenizerConfig(expansion=Expansion.WHOLE),
    "default, 0 merges": TokenizerConfig(merges=0),
    "default, 100 merges": TokenizerConfig(merges=100),
    "default, 2,000 merges": TokenizerConfig(merges=2000),
}


def sort_children(tree: Node) -> Node:
    """Return a tree with the children of each node in alphabetical order.

    >>> sort_children(Node("A", [Node("C"), Node("B")]))
    Node('[A [B ] [C ] ]')
    """
    children = map(sort_children, (child for child in tree.children if isinstance(child, Node)))
    return Node(tree.label, sorted(children, key=str))


def frequent(trees: Iterable[Node], least: int) -> list[Node]:
    """Return the trees that occur at least `least` times, each as often as it does."""
    counts = Counter(trees)
    return [tree for tree, count in counts.items() if count >= least for _ in range(count)]


_PAPER = TokenizerConfig(expansion=Expansion.PAPER)


@dataclass(frozen=True)
class Reading:
    """A way to read the paper: settings, which trees are learned from, and how every tree is written."""

    config: TokenizerConfig = _PAPER
    select: Callable[[Sequence[Node]], list[Node]] = list
    rewrite: Callable[[Node], Node] = lambda tree: tree


READINGS = {
    "as it is": Reading(),
    "theta0 = 1": Reading(replace(_PAPER, theta=1.0)),
    "762 merges": Reading(replace(_PAPER, merges=762)),
    "each distinct tree once": Reading(select=lambda trees: list(dict.fromkeys(trees))),
    "trees that occur twice": Reading(select=lambda trees: frequent(trees, 2)),
    "trees that occur five times": Reading(select=lambda trees: frequent(trees, 5)),
    "children in alphabetical order": Reading(rewrite=sort_children),
}


def compare_readings(topv2: Path) -> dict[str, dict[str, Any]]:
    """Return the scores of each reading by name, without samples and with those of the paper."""
    train, held_out = skeletons_of_split(topv2, "train"), skeletons_of_split(topv2, "eval")
    result: dict[str, dict[str, Any]] = {}
    for name, reading in READINGS.items():
        learned, counted = ([reading.rewrite(tree) for tree in trees] for trees in (reading.select(train), held_out))
        ways = {f"K0 = {samples}": replace(reading.config, samples=samples) for samples in (0, _PAPER.samples)}
        result[name] = {way: measure(config, learned, counted)[0].to_json() for way, config in ways.items()}
    return result


def measure(config: TokenizerConfig, train: Sequence[Node], held_out: Sequence[Node]) -> tuple[TokenizerScores, float]:
    """Return the scores of a tokenizer on trees that it was not trained on, and the seconds that its training took."""
    start = time.perf_counter()
    tokenizer = TreePieceTokenizer.train(train, config)
    seconds = time.perf_counter() - start
    return evaluate_tokenizer(tokenizer, held_out), seconds


def compare(topv2: Path) -> dict[str, Any]:
    """Return the size of the train split, and by name the scores of each vocabulary and its seconds of training."""
    train, held_out = skeletons_of_split(topv2, "train"), skeletons_of_split(topv2, "eval")
    result: dict[str, Any] = {"train": corpus_statistics(train)}
    for name, config in WAYS.items():
        scores, seconds = measure(config, train, held_out)
        result[name] = {**scores.to_json(), "train_seconds": seconds}
    return result


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_topv2(parser)
    parser.add_argument("--readings", action="store_true", help="compare other readings of the paper")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Namespace) -> None:
    """Train, count and print."""
    result = compare_readings(args.topv2) if args.readings else compare(args.topv2)
    if args.json:
        print(json.dumps(result))
        return
    if args.readings:
        _print_readings(result)
        return
    print("Train:", ", ".join(f"{name} {value:,}" for name, value in result.pop("train").items()), end="\n\n")
    print("| vocabulary | units | units a tree | unencodable |")
    print("|---|---:|---:|---:|")
    for name, way in result.items():
        rate = way["unencodable_seen_labels"] / way["trees"]
        print(f"| {name} | {way['units']:,} | {way['units_per_tree']:.3f} | {rate:.2%} |")


def _print_readings(result: Mapping[str, Mapping[str, Any]]) -> None:
    ways = [f"{what}, {name}" for name in next(iter(result.values())) for what in ("units", "unencodable")]
    print("| reading |", " | ".join(ways), "|")
    print("|---" + "|---:" * len(ways) + "|")
    for name, found in result.items():
        values = [f"{one['units']:,} | {one['unencodable_seen_labels'] / one['trees']:.2%}" for one in found.values()]
        print(f"| {name} |", " | ".join(values), "|")
