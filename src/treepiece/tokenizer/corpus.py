"""The distinct trees of a corpus and how often each occurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from treepiece.errors import OptionError, TreeParseError
from treepiece.tokenizer.folding import CONTINUATION, fold
from treepiece.trees.node import Node


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
    def collect(cls, trees: Iterable[Node | tuple[Node, int]]) -> Corpus:
        """Return the corpus of trees, each alone or as (tree, count)."""
        counter: Counter[Node] = Counter()
        for item in trees:
            tree, count = item if isinstance(item, tuple) else (item, 1)
            if not isinstance(count, int) or count < 1:
                raise OptionError(f"a tree occurs a whole number of times, at least once, got {count!r}")
            counter[tree] += count
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


def check_skeleton(tree: Node) -> None:
    """Raise if a tree holds words."""
    if not tree.is_skeleton:
        word = next(child for node in tree.nodes() for child in node.children if isinstance(child, str))
        raise TreeParseError(
            f"a tree to tokenize has labels only, found the word {word!r}: use Frame.from_tree(tree).skeleton"
        )
