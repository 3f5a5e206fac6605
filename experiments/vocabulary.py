"""How ways to train the tokenizer compare on TOPv2, as a table in Markdown.

    python -m experiments vocabulary [--json]

The first line says how large and repetitive the train split is. Vocabularies are learned on the train split and
counted on the eval split. A tree with a label that train does not have (two of the 17,160) cannot be encoded by any of
them and is left out of the last column. With --json there are also the seconds that each training took.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
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
    "default, 0 merges": TokenizerConfig(merges=0),
    "default, 100 merges": TokenizerConfig(merges=100),
    "default, 2,000 merges": TokenizerConfig(merges=2000),
}


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
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Namespace) -> None:
    """Train, count and print."""
    result = compare(args.topv2)
    if args.json:
        print(json.dumps(result))
        return
    print("Train:", ", ".join(f"{name} {value:,}" for name, value in result.pop("train").items()), end="\n\n")
    print("| vocabulary | units | units a tree | unencodable |")
    print("|---|---:|---:|---:|")
    for name, way in result.items():
        rate = way["unencodable_seen_labels"] / way["trees"]
        print(f"| {name} | {way['units']:,} | {way['units_per_tree']:.3f} | {rate:.2%} |")
