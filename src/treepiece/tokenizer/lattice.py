"""All partitions of many trees at once, and the one recursion that reads them.

A partition cuts a tree into units, and its score is the sum of the scores of its units. At a cut the tree falls apart:
so for each node v, over the units that match there,

    value(v) = combine over units u at v of ( score(u) + sum of value(c) over the nodes c that u cuts off )

With max for `combine` this is Viterbi (the paper's Algorithm 2 finds the same score), with log-sum-exp it is the inside
value log P(S). Going down again from the roots gives the best partition, samples, and expected counts.

The lattice stores the sums as edges: an edge belongs to a node, has a unit, and has tails, the nodes cut off. A few
nodes are not subtrees but places where several ways to lay one unit on a subtree meet; their edges have no unit (JOIN).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NOTHING = 0
"""The node with value 0 that every edge has as its first tail, so that none is without."""
JOIN = -1
"""In place of a unit, on edges that only gather cuts. Indexes the weight 0.0 from the end."""
IMPOSSIBLE = -2
"""In place of a unit, on the only edge of a subtree that no unit matches. Indexes the weight -inf from the end."""

_SLOT_SHIFT = 32
_NODE_MASK = (1 << _SLOT_SHIFT) - 1

Cuts = tuple[int, ...]
"""The nodes that an edge cuts off, from left to right, each packed with its slot (see `pack_cut`)."""


def pack_cut(slot: int, node: int) -> int:
    """Return a cut as one integer: the token number in the unit's shape where it lies, and the node cut off.

    One integer, because ways are copied and shifted (`cut + pack_cut(by, 0)`) in the innermost loop.
    """
    return slot << _SLOT_SHIFT | node


def cut_node(cut: int) -> int:
    """Return the node that a packed cut cuts off."""
    return cut & _NODE_MASK


class LatticeBuilder:
    """Collects nodes, each after its edges; every tail must exist before the edge that has it."""

    def __init__(self) -> None:
        self.units: list[int] = []
        self.cuts: list[int] = []
        self.n_cuts: list[int] = []
        self.n_edges: list[int] = []
        self.level: list[int] = []
        self._n_before = 0
        self.add_edge(JOIN, ())
        self.end_node(level=0)  # NOTHING

    def add_edge(self, unit: int, cuts: Cuts) -> None:
        """Give the next node an edge."""
        self.units.append(unit)
        self.cuts.append(NOTHING)
        self.cuts += cuts
        self.n_cuts.append(len(cuts) + 1)

    def end_node(self, level: int) -> int:
        """Return a new node with the edges added since the last; `level` is above that of all their tails."""
        if len(self.units) == self._n_before:
            self.add_edge(IMPOSSIBLE, ())
        self.n_edges.append(len(self.units) - self._n_before)
        self._n_before = len(self.units)
        self.level.append(level)
        return len(self.level) - 1


@dataclass(frozen=True)
class Scores:
    """The value of every node and the score of every edge, under one weight for each unit."""

    node: Floats
    edge: Floats


class Lattice:
    """A finished lattice: flat arrays, edges in order of level, so that numpy takes a level at a time.

    The edges of a node are in order of their units, which settles ties: the unit with the lowest id wins.
    """

    def __init__(self, builder: LatticeBuilder) -> None:
        level = np.array(builder.level)
        n_edges = np.array(builder.n_edges)
        n_cuts = np.array(builder.n_cuts)
        owner = np.repeat(np.arange(len(level)), n_edges)
        units = np.array(builder.units)
        order = np.lexsort((units, owner, level[owner]))
        self.n_nodes = len(level)
        self.owner: Ints = owner[order]
        self.unit: Ints = units[order]
        self.tail_start: Ints = np.concatenate([[0], np.cumsum(n_cuts[order])])
        cuts = np.array(builder.cuts)[_gather(np.cumsum(n_cuts) - n_cuts, n_cuts, order)]
        self.tail: Ints = cuts & _NODE_MASK
        self.slot: Ints = cuts >> _SLOT_SHIFT
        node_order = np.argsort(level, kind="stable")
        ends = np.cumsum(n_edges[node_order])
        self.last_edge: Ints = np.empty(self.n_nodes, dtype=np.int64)
        self.last_edge[node_order] = ends
        self.first_edge: Ints = self.last_edge - n_edges
        self._levels = self._split_levels(level[node_order], node_order)

    def _split_levels(self, level: Ints, nodes: Ints) -> list[_Level]:
        starts = np.flatnonzero(np.diff(level, prepend=-1))
        levels = []
        for lo, hi in zip(starts, [*starts[1:], len(nodes)], strict=True):
            first, last = self.first_edge[nodes[lo]], self.last_edge[nodes[hi - 1]]
            tails = slice(self.tail_start[first], self.tail_start[last])
            levels.append(
                _Level(
                    nodes=nodes[lo:hi],
                    edges=slice(first, last),
                    tails=tails,
                    edge_starts=self.first_edge[nodes[lo:hi]] - first,
                    tail_starts=self.tail_start[first:last] - tails.start,
                )
            )
        return levels[1:]  # without the level of NOTHING

    def evaluate(self, weights: Floats, combine: np.ufunc) -> Scores:
        """Return values and scores; `combine` is np.maximum (best) or np.logaddexp (sum of probabilities)."""
        edge = np.append(weights, [-np.inf, 0.0])[self.unit]
        node = np.zeros(self.n_nodes)
        for level in self._levels:
            scores = edge[level.edges]
            scores += np.add.reduceat(node[self.tail[level.tails]], level.tail_starts)
            node[level.nodes] = combine.reduceat(scores, level.edge_starts)
        return Scores(node, edge)

    def is_possible(self) -> npt.NDArray[np.bool_]:
        """Return which nodes have a partition at all."""
        n_units = max(int(self.unit.max(initial=-1)) + 1, 0)
        return np.isfinite(self.evaluate(np.zeros(n_units), np.maximum).node)

    def best_edges(self, scores: Scores) -> Ints:
        """Return the best edge of each node under `evaluate(..., np.maximum)`; of equal ones the first."""
        hits = np.flatnonzero(scores.edge == scores.node[self.owner])
        best = np.empty(self.n_nodes, dtype=np.int64)
        best[self.owner[hits[::-1]]] = hits[::-1]
        return best

    def shares(self, scores: Scores) -> Floats:
        """Return the probability of each edge given its node, under `evaluate(..., np.logaddexp)`."""
        values = scores.node[self.owner]
        return np.exp(scores.edge - np.where(np.isneginf(values), 0.0, values))

    def sharpened_shares(self, scores: Scores, theta: float) -> Floats:
        """Return the shares of the units at each subtree to the power `theta`, normalised again."""
        # In logarithms, and with the best edge of each node at 0, so that no power is too small or too large.
        possible = np.isfinite(scores.edge)
        relative = np.where(possible, scores.edge - np.where(possible, scores.node[self.owner], 0.0), -np.inf)
        relative[possible & (self.unit != JOIN)] *= theta
        best = np.full(self.n_nodes, -np.inf)
        np.maximum.at(best, self.owner, relative)
        powered = np.exp(relative - np.where(np.isfinite(best), best, 0.0)[self.owner])
        totals = np.bincount(self.owner, powered, self.n_nodes)[self.owner]
        shares: Floats = np.divide(powered, totals, out=np.zeros_like(powered), where=totals > 0.0)
        return shares

    def expected_counts(self, shares: Floats, roots: Ints, root_counts: Floats, n_units: int) -> Floats:
        """Return how often each unit is used: sum of E[n(pi, unit) | S] over the roots S with their counts.

        This is the E-step that the paper calls NP-hard and approximates by samples. With the one-hot shares of the best
        edges it gives the counts of the best partitions.
        """

        def split(level: _Level, use: Floats) -> Floats:
            return use[self.owner[level.edges]] * shares[level.edges]

        return self._pour(roots, root_counts, n_units, split)

    def sampled_counts(
        self, shares: Floats, roots: Ints, root_counts: Floats, n_units: int, rng: np.random.Generator
    ) -> Floats:
        """Return how often each unit is used when every root is partitioned `root_counts` times at random.

        All uses of a node are divided over its edges in one multinomial draw, which is the same as sampling each
        partition by itself, at the cost of one draw for each node.
        """

        def split(level: _Level, use: Floats) -> Floats:
            flow = np.zeros(level.edges.stop - level.edges.start)
            used = np.flatnonzero(use[level.nodes])
            ends = np.append(level.edge_starts, len(flow))
            for place in used:
                part = slice(ends[place], ends[place + 1])
                share = shares[level.edges][part]
                flow[part] = rng.multinomial(int(use[level.nodes[place]]), share / share.sum())
            return flow

        return self._pour(roots, root_counts, n_units, split)

    def _pour(
        self, roots: Ints, root_counts: Floats, n_units: int, split: Callable[[_Level, Floats], Floats]
    ) -> Floats:
        """Return the use of each unit, going down from the roots.

        A node is the root of a unit as often as it is a tree or is cut off by a unit above it; `split` divides that
        use over the edges of a level.
        """
        use: Floats = np.bincount(roots, root_counts, self.n_nodes).astype(np.float64)
        edge_use = np.zeros(len(self.unit))
        for level in reversed(self._levels):
            flow = edge_use[level.edges] = split(level, use)
            tails = self.tail_start[level.edges.start : level.edges.stop + 1]
            np.add.at(use, self.tail[level.tails], np.repeat(flow, np.diff(tails)))
        is_unit = self.unit >= 0
        return np.bincount(self.unit[is_unit], edge_use[is_unit], n_units).astype(np.float64)

    @cached_property
    def lists(self) -> _Lists:
        """The arrays as lists, which plain Python walks faster."""
        return _Lists(
            self.unit.tolist(),
            self.tail.tolist(),
            self.slot.tolist(),
            self.tail_start.tolist(),
            self.first_edge.tolist(),
            self.last_edge.tolist(),
        )


@dataclass(frozen=True)
class _Level:
    nodes: Ints
    edges: slice
    tails: slice
    edge_starts: Ints
    tail_starts: Ints


@dataclass(frozen=True)
class _Lists:
    unit: list[int]
    tail: list[int]
    slot: list[int]
    tail_start: list[int]
    first_edge: list[int]
    last_edge: list[int]

    def is_join(self, node: int) -> bool:
        return self.unit[self.first_edge[node]] == JOIN


def one_hot(edges: Ints, n_edges: int) -> Floats:
    """Return shares that give each node's whole weight to one edge."""
    shares = np.zeros(n_edges)
    shares[edges] = 1.0
    return shares


def _gather(starts: Ints, lengths: Ints, order: Ints) -> Ints:
    """Return the places of ragged runs, taken in another order.

    >>> _gather(np.array([0, 2]), np.array([2, 3]), np.array([1, 0])).tolist()
    [2, 3, 4, 0, 1]
    """
    starts, lengths = starts[order], lengths[order]
    ends = np.cumsum(lengths)
    places: Ints = np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
    return places
