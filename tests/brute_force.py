"""The definitions, written down without any cleverness: what the fast code is compared with."""

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations

from treepiece.tokenizer.corpus import Corpus
from treepiece.tokenizer.merges import BaseVocabulary
from treepiece.tokenizer.shape import CLOSE, PLACEHOLDER, Shape
from treepiece.trees.node import Node

Edge = tuple[int, ...]
"""An edge, by the path from the root to its lower node: (0, 2) is the third child of the first child."""


def edges(tree: Node, path: Edge = ()) -> Iterator[Edge]:
    for place, child in enumerate(tree.children):
        yield (*path, place)
        yield from edges(child, (*path, place))


def cut(tree: Node, cuts: frozenset[Edge], labels: dict[str, int]) -> list[Shape]:
    """Return the pieces of a tree with placeholders where it was cut, in pre-order."""
    pieces: list[Shape] = []
    todo = [(tree, ())]
    while todo:
        root, path = todo.pop(0)
        cut_off: list[tuple[Node, Edge]] = []
        pieces.append(piece(root, path, cuts, labels, cut_off))
        todo[:0] = cut_off
    return pieces


def piece(
    node: Node, path: Edge, cuts: frozenset[Edge], labels: dict[str, int], cut_off: list[tuple[Node, Edge]]
) -> Shape:
    tokens = [labels[node.label]]
    for place, child in enumerate(node.children):
        below = (*path, place)
        if below in cuts:
            tokens.append(PLACEHOLDER)
            cut_off.append((child, below))
        else:
            tokens += piece(child, below, cuts, labels, cut_off)
    return (*tokens, CLOSE)


def partitions(tree: Node, labels: dict[str, int]) -> Iterator[list[Shape]]:
    """Yield every way to cut a tree."""
    every = list(edges(tree))
    for size in range(len(every) + 1):
        for chosen in combinations(every, size):
            yield cut(tree, frozenset(chosen), labels)


def scored_partitions(
    tree: Node, labels: dict[str, int], log_p: dict[Shape, float], *, with_placeholders: bool
) -> list[tuple[float, list[Shape]]]:
    """Return every partition into units with its score, the best first."""
    found = []
    for pieces in partitions(tree, labels):
        units = pieces if with_placeholders else [tuple(t for t in shape if t != PLACEHOLDER) for shape in pieces]
        if all(unit in log_p for unit in units):
            score = sum(log_p[unit] for unit in units)
            if score > -math.inf:
                found.append((score, pieces))
    return sorted(found, key=lambda item: -item[0])


def log_sum(scores: list[float]) -> float:
    top = max(scores)
    return top + math.log(sum(math.exp(score - top) for score in scores))


def paper_viterbi(tree: Node, labels: dict[str, int], log_p: dict[Shape, float]) -> float:
    """Return the best score of a tree by Algorithm 2 of the paper, transcribed.

    The paper visits the rooted subtrees of one depth in any order; the recursion needs the smaller ones first.
    """
    every = [(), *edges(tree)]
    nodes = {path: _at(tree, path) for path in every}
    rooted = [
        frozenset(chosen)
        for size in range(1, len(every) + 1)
        for chosen in combinations(every, size)
        if () in chosen and all(path[:-1] in chosen for path in chosen if path)
    ]

    def depth(t: frozenset[Edge]) -> int:
        return max(len(path) for path in t) + 1

    def shape(t: frozenset[Edge], root: Edge) -> Shape:
        tokens = [labels[nodes[root].label]]
        for place in range(len(nodes[root].children)):
            if (*root, place) in t:
                tokens += shape(t, (*root, place))
        return (*tokens, CLOSE)

    def components(t: frozenset[Edge]) -> list[Edge]:
        return [path for path in t if path[:-1] not in t or not path]

    value = {t: log_p.get(shape(t, ()), -math.inf) for t in rooted}
    for d in range(1, depth(frozenset(every)) + 1):
        for t in sorted((t for t in rooted if depth(t) == d), key=len):
            for d_before in range(1, d + 1):
                for before in (b for b in rooted if depth(b) == d_before and b < t):
                    difference = t - before
                    roots = components(difference)
                    if len(roots) == 1 and shape(difference, roots[0]) in log_p:
                        value[t] = max(value[t], value[before] + log_p[shape(difference, roots[0])])
    return value[frozenset(every)]


def _at(tree: Node, path: Edge) -> Node:
    for place in path:
        tree = tree.children[place]
    return tree


def merge_by_recounting(corpus: Corpus, n_merges: int) -> BaseVocabulary:
    """Return what `learn_merges` returns, counting every pair of every tree anew for each merge."""
    labels = {label: number for number, label in enumerate(corpus.labels)}
    counts: dict[Shape, int] = {(number, CLOSE): 0 for number in labels.values()}
    joined: list[set[Edge]] = [set() for _ in corpus.trees]
    for tree, weight in zip(corpus.trees, corpus.counts, strict=True):
        for node in tree.nodes():
            counts[labels[node.label], CLOSE] += weight
    while len(counts) < len(labels) + n_merges:
        pairs: Counter[Shape] = Counter()
        for tree, weight, done in zip(corpus.trees, corpus.counts, joined, strict=True):
            for edge in set(edges(tree)) - done:
                pairs[_joined_shape(tree, done, edge, labels)] += weight
        if not pairs:
            break
        best = min(pairs, key=lambda shape: (-pairs[shape], len(shape), shape))
        for tree, done in zip(corpus.trees, joined, strict=True):
            for edge in edges(tree):
                if edge not in done and _joined_shape(tree, done, edge, labels) == best:
                    done.add(edge)
        counts[best] = counts.get(best, 0) + pairs[best]
    return BaseVocabulary(tuple(counts), tuple(counts.values()), len(labels))


def _joined_shape(tree: Node, joined: set[Edge], edge: Edge, labels: dict[str, int]) -> Shape:
    inside = joined | {edge}
    root = edge
    while root in inside:
        root = root[:-1]
    cuts = frozenset(set(edges(tree)) - inside)
    shape = piece(_at(tree, root), root, cuts, labels, [])
    return tuple(token for token in shape if token != PLACEHOLDER)


def string_alignment(one: str, other: str) -> int:
    """Return the fewest letters to insert, drop, replace, or swap with their neighbours; no letter is edited twice."""

    @cache
    def distance(i: int, j: int) -> int:
        if min(i, j) == 0:
            return max(i, j)
        found = [
            distance(i - 1, j) + 1,
            distance(i, j - 1) + 1,
            distance(i - 1, j - 1) + (one[i - 1] != other[j - 1]),
        ]
        if min(i, j) > 1 and (one[i - 1], one[i - 2]) == (other[j - 2], other[j - 1]):
            found.append(distance(i - 2, j - 2) + 1)
        return min(found)

    return distance(len(one), len(other))
