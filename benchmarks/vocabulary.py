"""Prints how ways to train the tokenizer compare on TOPv2, as a table in Markdown.

    python benchmarks/vocabulary.py [--json]

First come the facts of the train split that the docs mention. Vocabularies are learned on the train split and counted
on the eval split. A tree that has a label train has not (two of the 17,160) cannot be encoded by any of them and is
left out of the last column. With --json there are also the seconds that each training took.
"""

import argparse
import json
import time
from collections.abc import Sequence

from corpora import topv2_skeletons

from treepiece import Node, TokenizerConfig, TreePieceTokenizer
from treepiece.tokenizer.config import Expansion
from treepiece.tokenizer.em import EmMethod
from treepiece.tokenizer.evaluation import TokenizerScores, evaluate_tokenizer
from treepiece.tokenizer.forest import Forest


def corpus_facts(skeletons: list[Node]) -> dict[str, int]:
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


def main() -> None:
    """Train, count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    train, held_out = topv2_skeletons("train"), topv2_skeletons("eval")
    facts = corpus_facts(train)
    results = {name: measure(config, train, held_out) for name, config in WAYS.items()}
    if options.json:
        ways = {name: {**scores.to_json(), "train_seconds": seconds} for name, (scores, seconds) in results.items()}
        print(json.dumps({"train": facts} | ways))
        return
    print("Train:", ", ".join(f"{name} {value:,}" for name, value in facts.items()), end="\n\n")
    print("| vocabulary | units | units a tree | unencodable |")
    print("|---|---:|---:|---:|")
    for name, (scores, _) in results.items():
        rate = scores.unencodable_seen_labels / scores.trees
        print(f"| {name} | {scores.units:,} | {scores.units_per_tree:.3f} | {rate:.2%} |")


if __name__ == "__main__":
    main()
