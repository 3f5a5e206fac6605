"""The distinct trees of a corpus and how often each occurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import SupportsIndex

from treepiece.errors import OptionError, TreeParseError
from treepiece.tokenizer.folding import CONTINUATION, fold
from treepiece.trees.node import Node

Trees = Iterable[Node | tuple[Node, SupportsIndex]] | Mapping[Node, SupportsIndex]
"""Trees, each alone or as (tree, count), or a mapping from trees to counts such as a Counter."""

_LARGEST_COUNT = 10**12


@dataclass(frozen=True)
class Corpus:
    """Distinct skeletons, their counts, and their labels in alphabetical order.

    Very wide nodes are folded (see `folding`); if there are any, the continuation label is the last of the labels.

    >>> corpus = Corpus.collect([Node("B"), Node("A", [Node("B")]), Node("B")])
    >>> corpus.counts, corpus.labels
    ((2, 1), ('A', 'B'))
    """

    trees: tuple[Node, ...]
    counts: tuple[int, ...]
    labels: tuple[str, ...]

    @classmethod
    def collect(cls, trees: Trees) -> Corpus:
        """Return the corpus of trees."""
        counter: Counter[Node] = Counter()
        for item in trees.items() if isinstance(trees, Mapping) else trees:
            if isinstance(item, tuple):
                counter[item[0]] += _checked(item[1])
            else:
                counter[item] += 1
        if not counter:
            raise OptionError("there are no trees to learn from: pass at least one")
        labels: set[str] = set()
        for tree in counter:
            check_skeleton(tree)
            labels.update(node.label for node in tree.nodes())
        if CONTINUATION in labels:
            raise TreeParseError(f"the label {CONTINUATION!r} is reserved: rename it")
        folded = tuple(fold(tree) for tree in counter)
        is_folded = any(tree is not before for tree, before in zip(folded, counter, strict=True))
        return cls(folded, tuple(counter.values()), (*sorted(labels), *[CONTINUATION] * is_folded))


def _checked(count: SupportsIndex) -> int:
    number = count.__index__() if isinstance(count, SupportsIndex) else 0
    if not 1 <= number <= _LARGEST_COUNT:
        raise OptionError(f"a tree occurs a whole number of times, from 1 to {_LARGEST_COUNT:,}, got {count!r}")
    return number


def check_skeleton(tree: Node) -> None:
    """Raise if a tree is none, or holds words."""
    if not isinstance(tree, Node):
        raise TreeParseError(f"expected a Node, got {type(tree).__name__}: of a frame, use frame.skeleton")
    if not tree.is_skeleton:
        word = next(child for node in tree.nodes() for child in node.children if isinstance(child, str))
        raise TreeParseError(
            f"a tree to tokenize has labels only, found the word {word!r}: use Frame.from_tree(tree).skeleton"
        )
