"""A tokenizer for labelled ordered trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, overload

import numpy as np

from treepiece.errors import OptionError, UnitError, UnknownLabelError
from treepiece.options import one_of, whole_number
from treepiece.tokenizer.assembly import Order, assemble, unit_places
from treepiece.tokenizer.config import TokenizerConfig, check_theta
from treepiece.tokenizer.corpus import Corpus, Trees, check_skeleton
from treepiece.tokenizer.forest import Forest
from treepiece.tokenizer.lattice import Lattice
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.nbest import nbest_partitions
from treepiece.tokenizer.nests import write_nests
from treepiece.tokenizer.partition import choose_random, read_partition
from treepiece.tokenizer.storage import load_vocabulary, save_vocabulary
from treepiece.tokenizer.training import OnProgress, TrainingReport, train_vocabulary
from treepiece.tokenizer.viterbi import BestPartitions
from treepiece.tokenizer.vocabulary import Vocabulary
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node
from treepiece.trees.outline import outline
from treepiece.trees.svg import svg

UnitIds = tuple[int, ...]


class ScoredUnits(NamedTuple):
    """The units of one partition and the log-probability of the partition."""

    unit_ids: UnitIds
    log_p: float


class TreePieceTokenizer:
    """Cuts trees into units and puts them together again: `decode(encode(tree)) == tree`.

    >>> from treepiece import parse_brackets
    >>> tree = parse_brackets("[A [B ] [B ] ]", any_label=True)
    >>> tokenizer = TreePieceTokenizer.train([tree] * 3)
    >>> [str(tokenizer.units[unit_id]) for unit_id in tokenizer.encode(tree)]
    ['[A [B ] [B ] ]']
    >>> wider = parse_brackets("[A [B ] [B ] [B ] ]", any_label=True)
    >>> tokenizer.decode(tokenizer.encode(wider)) == wider
    True
    """

    def __init__(self, vocabulary: Vocabulary, report: TrainingReport | None = None) -> None:
        self.units = vocabulary
        self.report = report

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {len(self.units):,} units over {len(self.units.known_labels):,} labels>"

    @classmethod
    def train(
        cls,
        trees: Trees,
        config: TokenizerConfig | None = None,
        on_progress: OnProgress | None = None,
    ) -> TreePieceTokenizer:
        """Return a tokenizer for trees like these: each alone, as (tree, count), or in a Counter."""
        return cls(*train_vocabulary(Corpus.collect(trees), config or TokenizerConfig(), on_progress))

    @overload
    def encode(self, tree: Node, *, order: Order = ..., missing_ok: Literal[False] = ...) -> UnitIds: ...
    @overload
    def encode(self, tree: Node, *, order: Order = ..., missing_ok: bool) -> UnitIds | None: ...
    def encode(self, tree: Node, *, order: Order = Order.PRE, missing_ok: bool = False) -> UnitIds | None:
        """Return the units of the most probable partition.

        A label never seen in training is an error that names it, or None with `missing_ok`.
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
        """Return what `encode` returns for each tree, working once for each distinct tree."""
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
        best = BestPartitions(self._matcher, forest, self.units.log_p)
        level_order = one_of("order", order, Order) is Order.LEVEL
        for tree, label, children in roots:
            unit_ids = encodings[tree] = best.units(label, children, level_order=level_order)
            if unit_ids is None and not missing_ok:
                raise _no_partition(tree)
        return list(map(encodings.__getitem__, trees))

    def decode(self, unit_ids: Sequence[int], *, order: Order = Order.PRE) -> Node:
        """Return the tree that units make; raise where they do not make exactly one."""
        return assemble(unit_ids, self.units, one_of("order", order, Order))

    def places(self, unit_ids: Sequence[int], *, order: Order = Order.PRE) -> list[int]:
        """Return which of the units each node comes from, for the nodes of `decode(unit_ids)` in pre-order."""
        return unit_places(unit_ids, self.units, one_of("order", order, Order))

    def draw(self, tree: Node, *, colour: bool = False) -> str:
        """Return a drawing of a tree, with or without words, that tells the number of each node's unit."""
        return outline(tree, self._places_of(tree), colour=colour)

    def svg(self, tree: Node) -> str:
        """Return a drawing of a tree, with or without words, in which each unit has its own colour."""
        return svg(tree, self._places_of(tree))

    def _places_of(self, tree: Node) -> list[int]:
        skeleton = Frame.from_tree(tree).skeleton if isinstance(tree, Node) and not tree.is_skeleton else tree
        places = self.places(self.encode(skeleton))
        rank = {place: number for number, place in enumerate(dict.fromkeys(places))}
        return [rank[place] for place in places]  # counted through: a continuation has a place but no node

    def sample(
        self,
        tree: Node,
        rng: np.random.Generator,
        *,
        theta: float = 1.0,
        local: bool = False,
        order: Order = Order.PRE,
    ) -> UnitIds:
        """Return the units of a random partition pi, drawn with probability in proportion to p(pi) ** theta.

        With `local` the unit at each step of the way down is drawn with its own probability to the power theta, as the
        paper's Algorithm 3 does with the steps of its way back. For theta = 1 both are the same; theta = 0 is uniform
        over partitions, or over the units at each step.
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
        """Return what `sample` returns for each tree, equal ones drawn anew, working once for each distinct tree."""
        check_theta(theta)
        if not isinstance(rng, np.random.Generator):
            raise OptionError(f"rng must be a generator of numpy, such as numpy.random.default_rng(0), got {rng!r:.60}")
        trees = list(trees)
        lattice, roots = self._lattice(trees)
        scores = lattice.evaluate(self.units.weights * (1.0 if local else theta), np.logaddexp)
        shares = lattice.sharpened_shares(scores, theta) if local else lattice.shares(scores)
        choose = choose_random(lattice, shares, rng)
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
        """Return a pre-order sequence of units with placeholder nests (see `nests`)."""
        return write_nests(unit_ids, self.units)

    def save(self, folder: str | Path) -> None:
        """Write the tokenizer: `tokenizer.json`, which loads, and `units.txt`, for eyes."""
        save_vocabulary(Path(folder), self.units, self.report)

    @classmethod
    def load(cls, folder: str | Path) -> TreePieceTokenizer:
        """Return the tokenizer that `save` wrote."""
        return cls(*load_vocabulary(Path(folder)))

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self.units.shapes, cut_anywhere=False)

    def _lattice(self, trees: Iterable[Node]) -> tuple[Lattice, dict[Node, int]]:
        """Return the lattice of trees and the node of each; raise if one has no partition."""
        forest = Forest(self.units.known_labels, self.units.widths)
        numbers: dict[Node, int] = {}
        for tree in trees:
            if tree not in numbers:
                check_skeleton(tree)
                numbers[tree] = forest.add(tree)
        lattice, nodes = self._matcher.match(forest)
        possible = lattice.is_possible()
        for tree, number in numbers.items():
            if not possible[nodes[number]]:
                raise _no_partition(tree)
        return lattice, {tree: nodes[number] for tree, number in numbers.items()}


def _no_partition(tree: Node) -> UnitError:
    return UnitError(
        f"no units make the tree {tree!r:.120}: the vocabulary lacks a placeholder pattern that it needs; "
        "train with the default expansion, which has a pattern for every tree"
    )
