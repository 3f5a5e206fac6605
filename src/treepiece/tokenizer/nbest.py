"""The n best partitions of a tree."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np

from treepiece.tokenizer.lattice import Floats, Lattice
from treepiece.tokenizer.partition import Choice, Partition, read_partition

Derivation = tuple[float, int, tuple[int, ...]]
"""The negative score, the edge, and the rank of each tail's derivation."""


def nbest_partitions(lattice: Lattice, root: int, weights: Floats, n: int) -> list[tuple[float, Partition]]:
    """Return up to `n` different partitions of one tree with their scores, the best first.

    Each node keeps its `n` best derivations: an edge and, for each tail, which of the tail's derivations. Ties go to
    the edge that comes first and then to the better-ranked tails, so that the first is always the best partition.
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
    """Return the `n` cheapest ways to take one entry of each rising list, as (start + sum, entries taken).

    >>> _cheapest_sums(0.0, [[1.0, 5.0], [2.0, 3.0]], 3)
    [(3.0, (0, 0)), (4.0, (0, 1)), (7.0, (1, 0))]
    """
    sums: list[tuple[float, tuple[int, ...]]] = [(start, ())]
    for column in costs:
        # Entry (i, j) has (i + 1) * (j + 1) - 1 others that are no dearer, so most pairs need not be looked at.
        pairs = [
            (total + cost, (*taken, j))
            for i, (total, taken) in enumerate(sums)
            for j, cost in enumerate(column[: n // (i + 1)])
        ]
        sums = heapq.nsmallest(n, pairs)
    return sums
