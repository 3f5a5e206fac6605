"""Counts the decoder passes that each parser needs for the gold trees of TOPv2.

    python -m experiments passes [--split eval] [--json] [--plot FILE.png] [--subwords NAME]

TreePiece: one pass per unit, and one for the spans where there is a leaf. Autoregressive: one pass per token (labels,
two pointers per leaf, closing brackets). Non-autoregressive: one. The tokenizer is trained on the train split.

`--plot` draws Figure 3 of the paper: passes against the number of tokens of the logical form. The paper counts tokens
of RoBERTa's BPE, but does not say of which text, and that tokenizer is not part of this project. So the tokens here are
those that the autoregressive parser writes, and its curve is the diagonal. `--subwords roberta-base` (a name on the
Hugging Face hub, or a folder with a tokenizer.json) counts instead the subwords of the decoupled parse with its labels,
brackets and words, which is as near to the paper as we can tell.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from experiments.plotting import KINDS, draw_passes, new_figure
from experiments.topv2 import add_topv2, rows_of_split, skeletons_of_split
from treepiece import Frame, TreePieceTokenizer
from treepiece.decoding.linearization import TokenVocabulary
from treepiece.errors import OptionError
from treepiece.trees.frame import leaf_labels

OUR_TOKENS = "as the autoregressive parser writes it"


class Counts(NamedTuple):
    """What one tree needs: tokens of its logical form, units, passes of each parser.

    A tree with a label that train has not has no units (None), and no passes of TreePiece.
    """

    n_tokens: int
    n_units: int | None
    passes: dict[str, int]


class Point(NamedTuple):
    """The passes of one parser over the trees whose logical form has so many tokens."""

    tokens: int
    trees: int
    mean: float
    p10: int
    p90: int


Curves = dict[str, list[Point]]


def count_passes(
    frames: Sequence[Frame], tokenizer: TreePieceTokenizer, count_tokens: Callable[[Frame], int] | None = None
) -> list[Counts]:
    """Return what each tree needs; tokens are those that the autoregressive parser writes, unless they are counted."""
    vocabulary = TokenVocabulary(sorted({node.label for frame in frames for node in frame.skeleton.nodes()}))
    unit_ids = tokenizer.encode_batch([frame.skeleton for frame in frames], missing_ok=True)
    counts = []
    for frame, ids in zip(frames, unit_ids, strict=True):
        n_written = len(vocabulary.write(frame.skeleton, frame.spans))
        passes = {"ar": n_written, "nar": 1}
        if ids is not None:
            passes["treepiece"] = len(ids) + bool(leaf_labels(frame.skeleton))
        n_tokens = n_written if count_tokens is None else count_tokens(frame)
        counts.append(Counts(n_tokens, None if ids is None else len(ids), passes))
    return counts


def summarise_passes(counts: Sequence[Counts]) -> dict[str, float]:
    """Return the mean number of decoder passes per tree of each parser, and the share of trees that are one unit."""
    passes = {name: [tree.passes[name] for tree in counts if name in tree.passes] for name in KINDS}
    return {
        "trees": len(counts),
        "unencodable": sum(tree.n_units is None for tree in counts),
        "single_unit": sum(tree.n_units == 1 for tree in counts) / len(counts),
        **{name: sum(values) / len(values) for name, values in passes.items()},
    }


def group_by_length(counts: Iterable[Counts]) -> Curves:
    """Return for each parser the mean and the 10th and 90th percentile of its passes, by number of tokens."""
    groups: dict[str, defaultdict[int, list[int]]] = {name: defaultdict(list) for name in KINDS}
    for tree in counts:
        for name, passes in tree.passes.items():
            groups[name][tree.n_tokens].append(passes)
    return {name: [_point(n, group[n]) for n in sorted(group)] for name, group in groups.items()}


def _point(n_tokens: int, passes: Sequence[int]) -> Point:
    # Passes are whole numbers: a percentile between two of them would be one that no tree has.
    p10, p90 = np.percentile(passes, [10, 90], method="inverted_cdf").tolist()
    return Point(n_tokens, len(passes), sum(passes) / len(passes), p10, p90)


def subword_counter(name: str) -> Callable[[Frame], int]:
    """Return what counts the subwords of a logical form, by the tokenizer of a folder or of the Hugging Face hub."""
    file = Path(name) / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(file)) if file.is_file() else Tokenizer.from_pretrained(name)
    except Exception as error:  # the library raises nothing narrower
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise OptionError(
            f"the tokenizer {name!r} of --subwords cannot be loaded: {reason}; give a name on the Hugging Face hub, "
            "such as roberta-base, or a folder with a tokenizer.json"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda frame: len(tokenizer.encode(frame.to_brackets(), add_special_tokens=False).ids)


def curves_to_json(curves: Curves) -> dict[str, list[dict[str, Any]]]:
    """Return the curves as a value that `json.dumps` can write."""
    return {name: [point._asdict() for point in points] for name, points in curves.items()}


def count(topv2: Path, split: str, count_tokens: Callable[[Frame], int] | None = None) -> dict[str, Any]:
    """Return the mean passes of each parser on a split, and a curve of each by length."""
    tokenizer = TreePieceTokenizer.train(skeletons_of_split(topv2, "train"))
    frames = [row.frame for row in rows_of_split(topv2, split) if row.frame is not None]
    counts = count_passes(frames, tokenizer, count_tokens)
    return summarise_passes(counts) | {"by_length": curves_to_json(group_by_length(counts))}


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_topv2(parser)
    parser.add_argument("--split", default="eval")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with a table by length")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw passes against length (PNG)")
    parser.add_argument("--subwords", metavar="NAME", help="measure length in subwords, in the paper of roberta-base")


def run(args: Namespace) -> None:
    """Count, print and draw."""
    if args.plot:
        new_figure(1, 1)  # before the work, which would be in vain without matplotlib
    result = count(args.topv2, args.split, subword_counter(args.subwords) if args.subwords else None)
    curves = result["by_length"]
    if args.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            if name != "by_length":
                print(f"{name:12} {value:10,.3f}")
    if args.plot:
        tokens = f"in subwords of {Path(args.subwords).name}" if args.subwords else OUR_TOKENS
        draw_passes(curves, args.plot, data=f"Gold trees of TOPv2 {args.split}", tokens=tokens)
