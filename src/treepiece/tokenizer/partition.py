"""Partitions read off a lattice: the best ones and random ones."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from treepiece.tokenizer.lattice import Floats, Lattice

Piece = tuple[int, tuple[int, ...]]
"""A unit, and the slots of its shape at which something was cut off."""
Partition = list[Piece]

Choice = tuple[int, Sequence[int]]
Choose = Callable[[int, int], Choice]
"""Given a lattice node and a rank, returns the edge to take and the rank of each of its tails (none: all 0)."""


def read_partition(
    lattice: Lattice, root: int, choose: Choose, *, rank: int = 0, level_order: bool = False
) -> Partition:
    """Return the pieces of the partition that `choose` makes, in pre-order or level order of the units."""
    lists = lattice.lists
    pieces: Partition = []
    agenda = deque([(root, rank)])
    while agenda:
        edge, cuts = _settle(lattice, *(agenda.popleft() if level_order else agenda.pop()), choose)
        pieces.append((lists.unit[edge], tuple([slot for slot, _, _ in cuts])))
        agenda.extend([(node, rank) for _, node, rank in (cuts if level_order else reversed(cuts))])
    return pieces


def _settle(lattice: Lattice, node: int, rank: int, choose: Choose) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the edge chosen at a subtree and its cuts (slot, subtree, rank), with joins followed down to subtrees."""
    lists = lattice.lists
    edge, ranks = choose(node, rank)
    cuts: list[tuple[int, int, int]] = []
    open_cuts = _cuts(lattice, edge, ranks, 0)
    while open_cuts:
        slot, tail, tail_rank = open_cuts.pop()
        if lists.is_join(tail):
            join_edge, join_ranks = choose(tail, tail_rank)
            open_cuts += _cuts(lattice, join_edge, join_ranks, slot)
        else:
            cuts.append((slot, tail, tail_rank))
    return edge, cuts


def _cuts(lattice: Lattice, edge: int, ranks: Sequence[int], shift: int) -> list[tuple[int, int, int]]:
    """Return the cuts of an edge from right to left."""
    lists = lattice.lists
    tails = range(lists.tail_start[edge + 1] - 1, lists.tail_start[edge], -1)
    if not ranks:
        return [(lists.slot[t] + shift, lists.tail[t], 0) for t in tails]
    return [(lists.slot[t] + shift, lists.tail[t], rank) for t, rank in zip(tails, reversed(ranks), strict=True)]


def choose_best(lattice: Lattice, weights: Floats) -> Choose:
    """Return the choice that gives the best partition."""
    best = lattice.best_edges(lattice.evaluate(weights, np.maximum)).tolist()
    return lambda node, _: (best[node], ())


def choose_random(lattice: Lattice, shares: Floats, rng: np.random.Generator) -> Choose:
    """Return the choice that draws each edge with its share."""
    # One running total over all edges: the shares of a node are the part of it between its first and last edge.
    total = list(accumulate(shares.tolist(), initial=0.0))
    first, last = lattice.lists.first_edge, lattice.lists.last_edge

    def choose(node: int, _: int) -> Choice:
        lo, hi = first[node], last[node]
        target = total[lo] + rng.random() * (total[hi] - total[lo])
        return bisect_right(total, target, lo + 1, hi) - 1, ()

    return choose
