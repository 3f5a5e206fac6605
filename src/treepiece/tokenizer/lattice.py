"""The segmentation lattice: all partitions of many trees, and the recursion that evaluates them.

A partition pi cuts a tree S into units; log p(pi) is the sum of the log-probabilities of its units. What lies below a
cut does not depend on what lies above it. So for each node v, over the units u that match at v,

    value(v) = combine over u of ( log p(u) + sum of value(c) over the nodes c that u cuts off )

With max for `combine` these are Viterbi values: value(root) is the score of pi_S(p), which the paper's Algorithm 2
finds in exponential time. With log-sum-exp they are inside values: value(root) is log P(S). A second pass from the
roots down gives the best partition, samples, and the expected counts E[n(pi, u) | S], which the paper calls NP-hard.

The lattice is a hypergraph. Its nodes are distinct subtrees. An edge of a node stands for a unit that matches there;
its tails are the nodes that the unit cuts off. Some nodes are not subtrees: where a unit matches a subtree in several
ways, a JOIN node combines them, and its edges have no unit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NOTHING = 0
"""A node with value 0, the first tail of every edge, so that no edge is without tails."""
JOIN = -1
"""The unit of edges that only combine cuts. Indexes the weight 0.0 from the end."""
IMPOSSIBLE = -2
"""The unit of the only edge of a subtree that no unit matches. Indexes the weight -inf from the end."""

_POSITION_SHIFT = 32
_NODE_MASK = (1 << _POSITION_SHIFT) - 1

Cuts = tuple[int, ...]
"""The nodes that an edge cuts off, from left to right, each packed with its position (see `pack_cut`)."""


def pack_cut(position: int, node: int) -> int:
    """Return a cut as one integer: its position in the shape of the unit, and the node that is cut off.

    One integer, because the innermost loop of the matcher copies and shifts cuts (`cut + pack_cut(by, 0)`).
    """
    return position << _POSITION_SHIFT | node


def cut_node(cut: int) -> int:
    """Return the node of a packed cut."""
    return cut & _NODE_MASK


class LatticeBuilder:
    """Collects the edges and nodes of a lattice; the tails of an edge must be added before the edge."""

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
        """Add an edge to the next node."""
        self.units.append(unit)
        self.cuts.append(NOTHING)
        self.cuts += cuts
        self.n_cuts.append(len(cuts) + 1)

    def end_node(self, level: int) -> int:
        """Return a new node with the edges added since the last one; `level` must exceed the level of their tails."""
        if len(self.units) == self._n_before:
            self.add_edge(IMPOSSIBLE, ())
        self.n_edges.append(len(self.units) - self._n_before)
        self._n_before = len(self.units)
        self.level.append(level)
        return len(self.level) - 1


class LatticeValues(NamedTuple):
    """The value of every node and the score of every edge."""

    node: Floats
    edge: Floats


class Lattice:
    """A lattice as flat arrays, sorted by level, so that numpy processes a level at a time.

    The edges of a node are sorted by unit, which breaks ties: the unit with the lowest id wins.
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
        edge = np.repeat(np.argsort(order), n_cuts)  # of each cut, in the new order
        cuts = np.array(builder.cuts)[np.argsort(edge, kind="stable")]
        self.tail: Ints = cuts & _NODE_MASK
        self.position: Ints = cuts >> _POSITION_SHIFT
        node_order = np.argsort(level, kind="stable")
        ends = np.cumsum(n_edges[node_order])
        self.last_edge: Ints = np.empty(self.n_nodes, dtype=np.int64)
        self.last_edge[node_order] = ends
        self.first_edge: Ints = self.last_edge - n_edges
        first_nodes = np.flatnonzero(np.diff(level[node_order])) + 1  # of each level but that of NOTHING
        self._levels = [self._level(nodes) for nodes in np.split(node_order, first_nodes)[1:]]

    def _level(self, nodes: Ints) -> _Level:
        first, last = self.first_edge[nodes[0]], self.last_edge[nodes[-1]]
        tails = slice(self.tail_start[first], self.tail_start[last])
        return _Level(
            nodes=nodes,
            edges=slice(first, last),
            tails=tails,
            edge_starts=self.first_edge[nodes] - first,
            tail_starts=self.tail_start[first:last] - tails.start,
        )

    def evaluate(self, weights: Floats, combine: np.ufunc) -> LatticeValues:
        """Return Viterbi values (`combine` is np.maximum) or inside values (np.logaddexp); `weights` are by unit."""
        edge = np.append(weights, [-np.inf, 0.0])[self.unit]
        node = np.zeros(self.n_nodes)
        for level in self._levels:
            scores = edge[level.edges]
            scores += np.add.reduceat(node[self.tail[level.tails]], level.tail_starts)
            node[level.nodes] = combine.reduceat(scores, level.edge_starts)
        return LatticeValues(node, edge)

    def is_possible(self) -> npt.NDArray[np.bool_]:
        """Return which nodes have a partition."""
        n_units = int(self.unit.max()) + 1
        return np.isfinite(self.evaluate(np.zeros(n_units), np.maximum).node)

    def best_edges(self, viterbi: LatticeValues) -> Ints:
        """Return the best edge of each node, the first of equally good ones."""
        hits = np.flatnonzero(viterbi.edge == viterbi.node[self.owner])
        best = np.empty(self.n_nodes, dtype=np.int64)
        best[self.owner[hits[::-1]]] = hits[::-1]
        return best

    def edge_probabilities(self, inside: LatticeValues) -> Floats:
        """Return the probability of each edge given its node."""
        values = inside.node[self.owner]
        return np.exp(inside.edge - np.where(np.isneginf(values), 0.0, values))

    def tempered_probabilities(self, inside: LatticeValues, theta: float) -> Floats:
        """Return the probability of each edge given its node to the power `theta`, normalised again."""
        # In log space, relative to the best edge of each node, so that no power underflows or overflows.
        possible = np.isfinite(inside.edge)
        relative = np.where(possible, inside.edge - np.where(possible, inside.node[self.owner], 0.0), -np.inf)
        relative[possible & (self.unit != JOIN)] *= theta
        best = np.full(self.n_nodes, -np.inf)
        np.maximum.at(best, self.owner, relative)
        powered = np.exp(relative - np.where(np.isfinite(best), best, 0.0)[self.owner])
        totals = np.bincount(self.owner, powered, self.n_nodes)[self.owner]
        probabilities: Floats = np.divide(powered, totals, out=np.zeros_like(powered), where=totals > 0.0)
        return probabilities

    def expected_counts(self, probabilities: Floats, roots: Ints, root_counts: Floats, n_units: int) -> Floats:
        """Return the sum of E[n(pi, u) | S] over the roots S, times their counts, for each unit u.

        `probabilities` are those of each edge given its node. With `one_hot` probabilities of the best edges the result
        is the counts of the best partitions.
        """

        def split(level: _Level, node_counts: Floats) -> Floats:
            return node_counts[self.owner[level.edges]] * probabilities[level.edges]

        return self._count_units(roots, root_counts, n_units, split)

    def sampled_counts(
        self, probabilities: Floats, roots: Ints, root_counts: Floats, n_units: int, rng: np.random.Generator
    ) -> Floats:
        """Return the count of each unit in random partitions, `root_counts` of them for each root.

        One multinomial draw distributes the count of a node over its edges. This is equivalent to sampling each
        partition separately, at the cost of one draw per node.
        """

        def split(level: _Level, node_counts: Floats) -> Floats:
            edge_counts = np.zeros(level.edges.stop - level.edges.start)
            ends = np.append(level.edge_starts, len(edge_counts))
            for index in np.flatnonzero(node_counts[level.nodes]):
                part = slice(ends[index], ends[index + 1])
                p = probabilities[level.edges][part]
                edge_counts[part] = rng.multinomial(int(node_counts[level.nodes[index]]), p / p.sum())
            return edge_counts

        return self._count_units(roots, root_counts, n_units, split)

    def _count_units(
        self, roots: Ints, root_counts: Floats, n_units: int, split: Callable[[_Level, Floats], Floats]
    ) -> Floats:
        """Return the count of each unit, propagating counts from the roots down (the outside pass).

        The count of a node is how often it is a root or is cut off by a unit above it; `split` distributes the counts
        of the nodes of a level over their edges.
        """
        node_counts: Floats = np.bincount(roots, root_counts, self.n_nodes).astype(np.float64)
        edge_counts = np.zeros(len(self.unit))
        for level in reversed(self._levels):
            counts = edge_counts[level.edges] = split(level, node_counts)
            tails = self.tail_start[level.edges.start : level.edges.stop + 1]
            np.add.at(node_counts, self.tail[level.tails], np.repeat(counts, np.diff(tails)))
        is_unit = self.unit >= 0
        return np.bincount(self.unit[is_unit], edge_counts[is_unit], n_units).astype(np.float64)

    @cached_property
    def lists(self) -> _Lists:
        """The arrays as lists, which are faster to index from Python."""
        return _Lists(*(getattr(self, name).tolist() for name in _Lists._fields))


class _Level(NamedTuple):
    nodes: Ints
    edges: slice
    tails: slice
    edge_starts: Ints
    tail_starts: Ints


class _Lists(NamedTuple):
    unit: list[int]
    tail: list[int]
    position: list[int]
    tail_start: list[int]
    first_edge: list[int]
    last_edge: list[int]

    def is_join(self, node: int) -> bool:
        return self.unit[self.first_edge[node]] == JOIN


def one_hot(edges: Ints, n_edges: int) -> Floats:
    """Return probabilities of 1 for the given edges and 0 for all others."""
    probabilities = np.zeros(n_edges)
    probabilities[edges] = 1.0
    return probabilities
