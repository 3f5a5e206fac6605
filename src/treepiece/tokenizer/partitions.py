"""Partitions of trees: the best one, the n best, and random samples.

`read_partition` follows the edges of a lattice from a root down. A function chooses the edge at each node: the best one
(Viterbi), a random one (the backward sampling of the paper's Algorithm 3), or the one of a given rank (n-best).

`ViterbiEncoder` finds best partitions without a lattice, while it matches units with placeholders. Such a unit matches
a node in at most one way, so only the best score and the best unit of each subtree are stored. Building the arrays of a
lattice takes far longer, especially for a single tree.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from treepiece.tokenizer.corpus import Forest
from treepiece.tokenizer.lattice import Floats, Lattice
from treepiece.tokenizer.matcher import Matcher
from treepiece.tokenizer.shape import PLACEHOLDER

Piece = tuple[int, tuple[int, ...]]
"""A unit, and the positions in its shape where other units are attached."""
Partition = list[Piece]

Choice = tuple[int, Sequence[int]]
Choose = Callable[[int, int], Choice]
"""Given a lattice node and a rank, returns the edge to follow and the rank of each of its tails (none: all 0)."""


def read_partition(
    lattice: Lattice, root: int, choose: Choose, *, rank: int = 0, level_order: bool = False
) -> Partition:
    """Return the pieces of the partition that `choose` selects, in pre-order or in level order of the units."""
    lists = lattice.lists
    pieces: Partition = []
    agenda = deque([(root, rank)])
    while agenda:
        edge, cuts = _follow(lattice, *(agenda.popleft() if level_order else agenda.pop()), choose)
        pieces.append((lists.unit[edge], tuple([position for position, _, _ in cuts])))
        agenda.extend([(node, rank) for _, node, rank in (cuts if level_order else reversed(cuts))])
    return pieces


def _follow(lattice: Lattice, node: int, rank: int, choose: Choose) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the edge chosen at a subtree and its cuts (position, subtree, rank), with JOIN nodes resolved."""
    lists = lattice.lists
    edge, ranks = choose(node, rank)
    cuts: list[tuple[int, int, int]] = []
    open_cuts = _cuts(lattice, edge, ranks, 0)
    while open_cuts:
        position, tail, tail_rank = open_cuts.pop()
        if lists.is_join(tail):
            join_edge, join_ranks = choose(tail, tail_rank)
            open_cuts += _cuts(lattice, join_edge, join_ranks, position)
        else:
            cuts.append((position, tail, tail_rank))
    return edge, cuts


def _cuts(lattice: Lattice, edge: int, ranks: Sequence[int], shift: int) -> list[tuple[int, int, int]]:
    """Return the cuts of an edge from right to left."""
    lists = lattice.lists
    tails = range(lists.tail_start[edge + 1] - 1, lists.tail_start[edge], -1)
    if not ranks:
        return [(lists.position[t] + shift, lists.tail[t], 0) for t in tails]
    return [(lists.position[t] + shift, lists.tail[t], rank) for t, rank in zip(tails, reversed(ranks), strict=True)]


def choose_best(lattice: Lattice, weights: Floats) -> Choose:
    """Return the choice of the best edge."""
    best = lattice.best_edges(lattice.evaluate(weights, np.maximum)).tolist()
    return lambda node, _: (best[node], ())


def choose_random(lattice: Lattice, probabilities: Floats, rng: np.random.Generator) -> Choose:
    """Return the choice of a random edge; `probabilities` are those of each edge given its node."""
    # One running total over all edges; those of a node are the part between its first and its last edge.
    total = list(accumulate(probabilities.tolist(), initial=0.0))
    first, last = lattice.lists.first_edge, lattice.lists.last_edge

    def choose(node: int, _: int) -> Choice:
        lo, hi = first[node], last[node]
        target = total[lo] + rng.random() * (total[hi] - total[lo])
        return bisect_right(total, target, lo + 1, hi) - 1, ()

    return choose


def choose_sampled(lattice: Lattice, weights: Floats, theta: float, rng: np.random.Generator, *, local: bool) -> Choose:
    """Return the choice of random edges that draws a partition pi in proportion to p(pi) ** theta.

    With `local`, theta is the exponent of the probability of each edge given its node instead.
    """
    inside = lattice.evaluate(weights * (1.0 if local else theta), np.logaddexp)
    probabilities = lattice.tempered_probabilities(inside, theta) if local else lattice.edge_probabilities(inside)
    return choose_random(lattice, probabilities, rng)


Derivation = tuple[float, int, tuple[int, ...]]
"""The negative score, the edge, and the rank of each tail's derivation."""


def nbest_partitions(lattice: Lattice, root: int, weights: Floats, n: int) -> list[tuple[float, Partition]]:
    """Return up to `n` distinct partitions of one tree with their scores, the best first.

    Each node keeps its `n` best derivations: an edge and, for each tail, the rank of one of the tail's derivations.
    Ties go to the first edge, then to the better-ranked tails, so the first result is always the best partition.
    """
    lists = lattice.lists
    edge_weight = np.append(weights, [-np.inf, 0.0])[lattice.unit].tolist()
    ranked: list[list[Derivation]] = [[(0.0, 0, ())]]
    for node in range(1, lattice.n_nodes):
        found = []
        for edge in range(lists.first_edge[node], lists.last_edge[node]):
            if edge_weight[edge] > -math.inf:
                tails = lists.tail[lists.tail_start[edge] + 1 : lists.tail_start[edge + 1]]
                costs = [[item[0] for item in ranked[tail]] for tail in tails]
                found += [(cost, edge, ranks) for cost, ranks in _cheapest_sums(-edge_weight[edge], costs, n)]
        ranked.append(heapq.nsmallest(n, found))

    def choose(node: int, rank: int) -> Choice:
        _, edge, ranks = ranked[node][rank]
        return edge, ranks

    return [(-item[0], read_partition(lattice, root, choose, rank=rank)) for rank, item in enumerate(ranked[root])]


def _cheapest_sums(start: float, costs: Sequence[Sequence[float]], n: int) -> list[tuple[float, tuple[int, ...]]]:
    """Return the `n` cheapest ways to choose one entry of each sorted list, as (start + sum, indices).

    >>> _cheapest_sums(0.0, [[1.0, 5.0], [2.0, 3.0]], 3)
    [(3.0, (0, 0)), (4.0, (0, 1)), (7.0, (1, 0))]
    """
    sums: list[tuple[float, tuple[int, ...]]] = [(start, ())]
    for column in costs:
        # Entry (i, j) has (i + 1) * (j + 1) - 1 entries that are no more expensive, which rules out most pairs.
        pairs = [
            (total + cost, (*indices, j))
            for i, (total, indices) in enumerate(sums)
            for j, cost in enumerate(column[: n // (i + 1)])
        ]
        sums = heapq.nsmallest(n, pairs)
    return sums


Match = tuple[float, tuple[int, ...]]
"""A match of a fragment at a subtree: the sum of the best scores of the subtrees it cuts off, and those subtrees."""


class ViterbiEncoder:
    """The best partition of every subtree of a forest; among equally good units the lowest id wins."""

    def __init__(self, matcher: Matcher, forest: Forest, log_p: Sequence[float]) -> None:
        self._matcher = matcher
        self._log_p = log_p
        self._unit: list[int] = []  # the best unit of each subtree, -1 if there is no partition
        self._below: list[tuple[int, ...]] = []  # the subtrees that this unit cuts off
        self._options: list[dict[int, Match]] = []  # the matches at each subtree, by fragment or PLACEHOLDER
        for number, (label, children) in enumerate(zip(forest.labels, forest.children, strict=True)):
            matches = self._match(label, children)
            score, unit, below = self._best(matches)
            options = {matcher.fragment[state]: match for state, match in matches.items()}
            options.pop(-1, None)  # states in which no fragment ends
            if unit >= 0:
                options[PLACEHOLDER] = (score, (number,))
            self._unit.append(unit)
            self._below.append(below)
            self._options.append(options)

    def encode(self, label: int, children: tuple[int, ...], *, level_order: bool = False) -> tuple[int, ...] | None:
        """Return the units of the best partition of a tree, given the label and children of its root, or None."""
        _, first, roots = self._best(self._match(label, children))
        if first < 0:
            return None
        ids = [first]
        agenda = deque(roots)
        while agenda:
            root = agenda.popleft()
            ids.append(self._unit[root])
            if level_order:
                agenda.extend(self._below[root])
            else:
                agenda.extendleft(self._below[root][::-1])
        return tuple(ids)

    def _match(self, label: int, children: tuple[int, ...]) -> dict[int, Match]:
        """Return the states of the trie that the children of a node lead to, with the match that leads there."""
        steps = self._matcher.step
        start = self._matcher.start.get((label, len(children)))
        matches: dict[int, Match] = {} if start is None else {start: (0.0, ())}
        for child in children:
            options = self._options[child].items()
            after: dict[int, Match] = {}
            for state, match in matches.items():
                step = steps[state]
                for symbol, (more, cut_off) in options:
                    if symbol in step:
                        after[step[symbol]] = (match[0] + more, match[1] + cut_off) if cut_off else match
            matches = after
        return matches

    def _best(self, matches: dict[int, Match]) -> tuple[float, int, tuple[int, ...]]:
        """Return the score, the unit and the subtrees cut off of the best match of a whole unit."""
        best, best_unit = -math.inf, -1
        best_below: tuple[int, ...] = ()
        unit_at = self._matcher.unit_at
        for state, (score, below) in matches.items():
            unit = unit_at[state]
            if unit >= 0:
                score += self._log_p[unit]
                if score > best or (score == best and unit < best_unit):
                    best, best_unit, best_below = score, unit, below
        return best, best_unit, best_below
