"""Prints how ways to train the tokenizer compare on TOPv2, as a table in Markdown.

    python benchmarks/vocabulary.py [--json]

Vocabularies are learned on the train split and counted on the eval split. A tree that has a label train has not (two of
the 17,160) cannot be encoded by any of them and is left out of the last column.
"""

import argparse
import json

from corpora import topv2_skeletons

from treepiece import TokenizerConfig, TreePieceTokenizer
from treepiece.tokenizer.config import Expansion
from treepiece.tokenizer.em import EmMethod
from treepiece.tokenizer.evaluation import evaluate_tokenizer

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


def main() -> None:
    """Train, count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    train, held_out = topv2_skeletons("train"), topv2_skeletons("eval")
    results = {
        name: evaluate_tokenizer(TreePieceTokenizer.train(train, config), held_out) for name, config in WAYS.items()
    }
    if options.json:
        print(json.dumps({name: scores.to_json() for name, scores in results.items()}))
        return
    print("| vocabulary | units | units a tree | unencodable |")
    print("|---|---:|---:|---:|")
    for name, scores in results.items():
        rate = scores.unencodable_seen_labels / scores.trees
        print(f"| {name} | {scores.units:,} | {scores.units_per_tree:.3f} | {rate:.2%} |")


if __name__ == "__main__":
    main()
