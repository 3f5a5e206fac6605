"""`TreePieceTokenizer`: the interface of the tree tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, overload

import numpy as np

from treepiece.checks import one_of, whole_number
from treepiece.errors import OptionError, UnitError, UnknownLabelError
from treepiece.tokenizer.assembly import Order, assemble, unit_places, write_nests
from treepiece.tokenizer.corpus import Corpus, Forest, Trees, check_skeleton
from treepiece.tokenizer.lattice import Lattice
from treepiece.tokenizer.learning import (
    Merge,
    OnProgress,
    TokenizerConfig,
    TrainingReport,
    check_theta,
    train_vocabulary,
)
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.partitions import ViterbiEncoder, choose_sampled, nbest_partitions, read_partition
from treepiece.tokenizer.storage import load_vocabulary, save_vocabulary
from treepiece.tokenizer.vocabulary import Vocabulary
from treepiece.trees.drawing import outline, svg
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node

UnitIds = tuple[int, ...]


class ScoredUnits(NamedTuple):
    """The units of a partition and its log-probability."""

    unit_ids: UnitIds
    log_p: float


class TreePieceTokenizer:
    """A tokenizer for labelled ordered trees: `decode(encode(tree)) == tree` for every tree over known labels.

    `units` is the vocabulary and `report` the report of training.

    >>> from treepiece import TokenizerConfig, parse_brackets
    >>> counts = {"[R [T ] [D ] ]": 3, "[R [T ] [P [C ] ] ]": 2}
    >>> trees = {parse_brackets(text, any_label=True): count for text, count in counts.items()}
    >>> tokenizer = TreePieceTokenizer.train(trees, TokenizerConfig(merges=4))
    >>> for unit, count in tokenizer.merges:
    ...     print(count, unit)
    5 [R [T ] ]
    3 [R [T ] [D ] ]
    2 [P [C ] ]
    2 [R [T ] [P [C ] ] ]

    A tree that is not a unit is split into several:

    >>> tree = parse_brackets("[P [R [T ] [D ] ] ]", any_label=True)
    >>> [str(tokenizer.units[unit_id]) for unit_id in tokenizer.encode(tree)]
    ['[P _ ]', '[R [T ] [D ] ]']
    >>> tokenizer.decode(tokenizer.encode(tree)) == tree
    True
    """

    def __init__(self, vocabulary: Vocabulary, report: TrainingReport | None = None) -> None:
        self.units = vocabulary
        self.report = report

    @property
    def merges(self) -> tuple[Merge, ...]:
        """The merges of training in order, each with its count; empty if they were not saved."""
        return self.report.merges if self.report else ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {len(self.units):,} units over {len(self.units.known_labels):,} labels>"

    @classmethod
    def train(
        cls,
        trees: Trees,
        config: TokenizerConfig | None = None,
        on_progress: OnProgress | None = None,
    ) -> TreePieceTokenizer:
        """Return a tokenizer trained on trees, on pairs (tree, count), or on a mapping from trees to counts."""
        return cls(*train_vocabulary(Corpus.collect(trees), config or TokenizerConfig(), on_progress))

    @overload
    def encode(self, tree: Node, *, order: Order = ..., missing_ok: Literal[False] = ...) -> UnitIds: ...
    @overload
    def encode(self, tree: Node, *, order: Order = ..., missing_ok: bool) -> UnitIds | None: ...
    def encode(self, tree: Node, *, order: Order = Order.PRE, missing_ok: bool = False) -> UnitIds | None:
        """Return the units of the most probable partition.

        A label that is not in the vocabulary is an error, or None with `missing_ok`.
        """
        return self.encode_batch([tree], order=order, missing_ok=missing_ok)[0]

    @overload
    def encode_batch(
        self, trees: Iterable[Node], *, order: Order = ..., missing_ok: Literal[False] = ...
    ) -> list[UnitIds]: ...
    @overload
    def encode_batch(
        self, trees: Iterable[Node], *, order: Order = ..., missing_ok: bool
    ) -> list[UnitIds] | list[UnitIds | None]: ...
    def encode_batch(
        self, trees: Iterable[Node], *, order: Order = Order.PRE, missing_ok: bool = False
    ) -> list[UnitIds] | list[UnitIds | None]:
        """Return the encoding of each tree; each distinct tree is encoded once."""
        trees = list(trees)
        forest = Forest(self.units.known_labels, self.units.widths)
        encodings: dict[Node, UnitIds | None] = dict.fromkeys(trees)
        roots: list[tuple[Node, int, tuple[int, ...]]] = []
        for tree in encodings:
            check_skeleton(tree)
            try:
                roots.append((tree, *forest.add_below(tree)))
            except UnknownLabelError:
                if not missing_ok:
                    raise
        viterbi = ViterbiEncoder(self._matcher, forest, self.units.log_p)
        level_order = one_of("order", order, Order) is Order.LEVEL
        for tree, label, children in roots:
            unit_ids = encodings[tree] = viterbi.encode(label, children, level_order=level_order)
            if unit_ids is None and not missing_ok:
                raise _no_partition(tree)
        return list(map(encodings.__getitem__, trees))

    def decode(self, unit_ids: Sequence[int], *, order: Order = Order.PRE) -> Node:
        """Return the tree that units form; raise if they do not form exactly one."""
        return assemble(unit_ids, self.units, one_of("order", order, Order))

    def places(self, unit_ids: Sequence[int], *, order: Order = Order.PRE) -> list[int]:
        """Return the index in `unit_ids` of the unit of each node, for the nodes of `decode(unit_ids)` in pre-order."""
        return unit_places(unit_ids, self.units, one_of("order", order, Order))

    def draw(self, tree: Node, *, colour: bool = False) -> str:
        """Return a text drawing of a tree, with or without words, that numbers the nodes by unit."""
        return outline(tree, self._places_of(tree), colour=colour)

    def svg(self, tree: Node) -> str:
        """Return an SVG drawing of a tree, with or without words, that colours the nodes by unit."""
        return svg(tree, self._places_of(tree))

    def _places_of(self, tree: Node) -> list[int]:
        skeleton = Frame.from_tree(tree).skeleton if isinstance(tree, Node) and not tree.is_skeleton else tree
        places = self.places(self.encode(skeleton))
        rank = {place: number for number, place in enumerate(dict.fromkeys(places))}
        return [rank[place] for place in places]  # consecutive: a unit of continuation nodes only has no node here

    def sample(
        self,
        tree: Node,
        rng: np.random.Generator,
        *,
        theta: float = 1.0,
        local: bool = False,
        order: Order = Order.PRE,
    ) -> UnitIds:
        """Return the units of a random partition pi, drawn with a probability proportional to p(pi) ** theta.

        With `local`, theta is the exponent of the probability of each unit, drawn from the root down, as the paper's
        Algorithm 3 tempers each step of its backward pass. Both are the same for theta = 1; theta = 0 is uniform over
        partitions or, with `local`, over the units at each step.
        """
        return self.sample_batch([tree], rng, theta=theta, local=local, order=order)[0]

    def sample_batch(
        self,
        trees: Iterable[Node],
        rng: np.random.Generator,
        *,
        theta: float = 1.0,
        local: bool = False,
        order: Order = Order.PRE,
    ) -> list[UnitIds]:
        """Return a sample for each tree, also for equal ones; each distinct tree is matched once."""
        check_theta(theta)
        if not isinstance(rng, np.random.Generator):
            raise OptionError(f"rng must be a numpy Generator, such as numpy.random.default_rng(0), got {rng!r:.60}")
        trees = list(trees)
        lattice, roots = self._lattice(trees)
        choose = choose_sampled(lattice, self.units.weights, theta, rng, local=local)
        level_order = one_of("order", order, Order) is Order.LEVEL
        return [
            tuple([unit for unit, _ in read_partition(lattice, roots[tree], choose, level_order=level_order)])
            for tree in trees
        ]

    def nbest(self, tree: Node, n: int) -> list[ScoredUnits]:
        """Return up to `n` partitions of the tree, the most probable first, in pre-order."""
        n = whole_number("n", n, 1)
        lattice, roots = self._lattice([tree])
        found = nbest_partitions(lattice, roots[tree], self.units.weights, n)
        return [ScoredUnits(tuple(unit for unit, _ in pieces), score) for score, pieces in found]

    def score(self, tree: Node) -> float:
        """Return log P(tree), the sum over all its partitions."""
        lattice, roots = self._lattice([tree])
        return float(lattice.evaluate(self.units.weights, np.logaddexp).node[roots[tree]])

    def serialize(self, unit_ids: Sequence[int]) -> list[int]:
        """Return a pre-order sequence of units with placeholder nests (see `assembly`)."""
        return write_nests(unit_ids, self.units)

    def save(self, folder: str | Path) -> None:
        """Save the tokenizer in a folder: `tokenizer.json`, and `units.txt` for people to read."""
        save_vocabulary(Path(folder), self.units, self.report)

    @classmethod
    def load(cls, folder: str | Path) -> TreePieceTokenizer:
        """Return the tokenizer that was saved in a folder."""
        return cls(*load_vocabulary(Path(folder)))

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self.units.shapes, cut_anywhere=False)

    def _lattice(self, trees: Iterable[Node]) -> tuple[Lattice, dict[Node, int]]:
        """Return the lattice of trees and the node of each; raise if one has no partition."""
        forest = Forest(self.units.known_labels, self.units.widths)
        numbers: dict[Node, int] = {}
        for tree in dict.fromkeys(trees):
            check_skeleton(tree)
            numbers[tree] = forest.add(tree)
        lattice, nodes = self._matcher.match(forest)
        roots = {tree: nodes[number] for tree, number in numbers.items()}
        possible = lattice.is_possible()
        for tree, root in roots.items():
            if not possible[root]:
                raise _no_partition(tree)
        return lattice, roots


def _no_partition(tree: Node) -> UnitError:
    return UnitError(
        f"no units form the tree {tree!r:.120}: the vocabulary lacks a placeholder pattern; "
        "train with the default expansion, which can encode every tree"
    )
