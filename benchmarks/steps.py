"""Counts the decoder passes that each parser needs for the gold trees of TOPv2.

    python benchmarks/steps.py [--split eval] [--json]

TreePiece: one pass a unit, and one for the spans where there is a leaf. Autoregressive: one pass a token (labels, two
pointers a leaf, closing brackets). Non-autoregressive: one. The tokenizer is trained on the train split.
"""

from __future__ import annotations

import argparse
import json

from corpora import topv2_folder

from treepiece import TreePieceTokenizer
from treepiece.data.reader import read_rows
from treepiece.decoding.linear import LinearVocabulary
from treepiece.trees.frame import leaf_labels


def count_passes(split: str) -> dict[str, float]:
    """Return the mean number of decoder passes a tree of each parser, and the share of trees that are one unit."""
    folder = topv2_folder()
    tokenizer = TreePieceTokenizer.train(row.skeleton for row in read_rows(folder, split="train"))
    rows = [row for row in read_rows(folder, split=split) if row.frame is not None]
    vocabulary = LinearVocabulary(sorted({node.label for row in rows for node in row.skeleton.nodes()}))
    unit_ids = tokenizer.encode_batch([row.skeleton for row in rows], missing_ok=True)
    units = [
        len(ids) + bool(leaf_labels(row.skeleton))
        for row, ids in zip(rows, unit_ids, strict=True)
        if ids is not None  # a label that train has not
    ]
    tokens = [len(vocabulary.write(row.skeleton, row.frame.spans)) for row in rows if row.frame]
    return {
        "trees": len(rows),
        "unencodable": len(rows) - len(units),
        "single_unit": sum(ids is not None and len(ids) == 1 for ids in unit_ids) / len(rows),
        "treepiece": sum(units) / len(units),
        "ar": sum(tokens) / len(tokens),
        "nar": 1.0,
    }


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", default="eval")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    passes = count_passes(args.split)
    if args.json:
        print(json.dumps(passes))
        return
    for name, value in passes.items():
        print(f"{name:12} {value:10,.3f}")


if __name__ == "__main__":
    main()
