"""Search over trees of units: the units that may come next, and the most probable complete tree.

Generation is a tree at every step: the next unit fills the first open placeholder. A unit may do so if training had its
root label below the placeholder's parent label, and if the tree can still be completed within a budget of nodes. So
whatever the scores are, a search ends, and the result has only pairs of parent and child labels from training. No end
token is needed: a tree is complete when no placeholder is open.

`beam_search` works with any grammar; the autoregressive baseline searches over tokens with it. Scores are normalised
over the allowed items, so that they are probabilities of whole outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from treepiece.checks import whole_number
from treepiece.errors import OptionError, UnitError
from treepiece.tokenizer.folding import CONTINUATION
from treepiece.tokenizer.shape import placeholder_parents
from treepiece.tokenizer.vocabulary import Vocabulary
from treepiece.trees.node import Node

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

Pair = tuple[str | None, str]
"""The label of a parent (None above the root) and that of a child."""


def label_pairs(skeletons: Iterable[Node]) -> set[Pair]:
    """Return every pair of parent and child label in trees.

    >>> sorted(label_pairs([Node("A", [Node("B")])]), key=str)
    [('A', 'B'), (None, 'A')]
    """
    pairs: set[Pair] = set()
    for tree in skeletons:
        pairs.add((None, tree.label))
        for node in tree.nodes():
            pairs.update((node.label, child.label) for child in node.children if isinstance(child, Node))
    return pairs


def pair_table(pairs: Iterable[Pair], label_ids: Mapping[str, int], n_labels: int) -> Bools:
    """Return whether each label may be below each label, and in the last row at the root; other labels do not count.

    Shape: (labels + 1, labels).
    """
    below = np.zeros((n_labels + 1, n_labels), bool)
    for parent, child in pairs:
        if child in label_ids and (parent is None or parent in label_ids):
            below[n_labels if parent is None else label_ids[parent], label_ids[child]] = True
    return below


@dataclass(frozen=True)
class Partial:
    """A partial tree: its units, the placeholders that they fill, its open placeholders (the next one last).

    Placeholders are given by their parent labels.
    """

    unit_ids: tuple[int, ...]
    filled: tuple[int, ...]
    open: tuple[int, ...]
    n_nodes: int
    log_p: float

    @property
    def is_complete(self) -> bool:
        """Whether no placeholder is open."""
        return not self.open


class UnitGrammar:
    """The grammar of units: which of them may fill a placeholder, given the id of its parent label.

    Continuation units are never generated: they are for nodes wider than any in training.
    """

    def __init__(self, vocabulary: Vocabulary, pairs: Iterable[Pair], *, budget: int = 64) -> None:
        self.vocabulary = vocabulary
        self.budget = whole_number("budget", budget, 1)
        self.root = len(vocabulary.labels)
        """Stands for the parent label of the root."""
        self.placeholders = tuple(placeholder_parents(shape) for shape in vocabulary.shapes)
        self._n_nodes = np.array([sum(token >= 0 for token in shape) for shape in vocabulary.shapes], float)
        roots = [shape[0] for shape in vocabulary.shapes]
        self._allowed: Bools = pair_table(pairs, vocabulary.known_labels, self.root)[:, roots]
        self._least = self._least_nodes()
        self._costs = self._complete(self._least)
        continuation = vocabulary.label_ids[CONTINUATION]
        needed = {self.root}
        for parents, shape in zip(self.placeholders, vocabulary.shapes, strict=True):
            if continuation not in shape:
                needed.update(parents)
        for label in needed:
            if not np.isfinite(self._least[label]):
                place = "at the root" if label == self.root else f"below {vocabulary.labels[label]!r}"
                raise UnitError(f"no tree can be completed {place}: the grammar needs the pairs of all training trees")
        if self.budget < self._least[self.root]:
            raise OptionError(f"a budget of {budget} nodes is too small: a tree needs {self._least[self.root]:.0f}")

    def _least_nodes(self) -> Floats:
        """Return the least number of nodes that can fill a placeholder, by label (a fixed point)."""
        least = np.full(self.root + 1, np.inf)
        while True:
            better = np.where(self._allowed, self._complete(least), np.inf).min(axis=1)
            if np.array_equal(better, least):
                return least
            least = better

    def _complete(self, least: Floats) -> Floats:
        """Return the least number of nodes that complete a tree, by the next unit."""
        below = [sum(float(least[label]) for label in placeholders) for placeholders in self.placeholders]
        total: Floats = self._n_nodes + np.array(below)
        return total

    def start(self) -> Partial:
        """Return the empty tree."""
        return Partial((), (), (self.root,), 0, 0.0)

    def allowed(self, state: Partial) -> Bools:
        """Return which units may fill the first open placeholder, one boolean per unit."""
        reserved = state.n_nodes + sum(self._least[label] for label in state.open[:-1])
        fits: Bools = self._allowed[state.open[-1]] & (self._costs <= self.budget - reserved)
        return fits

    def extend(self, state: Partial, token: int, log_p: float) -> Partial:
        """Return the tree with one more unit in its first open placeholder."""
        return Partial(
            (*state.unit_ids, token),
            (*state.filled, state.open[-1]),
            state.open[:-1] + self.placeholders[token][::-1],
            state.n_nodes + int(self._n_nodes[token]),
            state.log_p + log_p,
        )


Logits = npt.NDArray[np.floating]


class State(Protocol):
    """A partial output."""

    @property
    def log_p(self) -> float:
        """The log-probability so far."""

    @property
    def is_complete(self) -> bool:
        """Whether the output is complete."""


S = TypeVar("S", bound=State)

Score = Callable[[Sequence[tuple[int, S]]], Logits]
"""Given (utterance, output so far) pairs, returns a row for each pair with the logits of the next token."""


class Grammar(Protocol[S]):
    """Decides what may come next: something in every incomplete state, and completion is always within reach."""

    def allowed(self, state: S) -> Bools:
        """Return which tokens may come next."""

    def extend(self, state: S, token: int, log_p: float) -> S:
        """Return the output with one more token."""


def beam_search(
    starts: Sequence[S],
    score: Score[S],
    grammar: Grammar[S],
    *,
    beam: int = 1,
    prune_ratio: float = 0.0,
) -> list[list[S]]:
    """Return for each start up to `beam` complete outputs, the most probable first; with a beam of 1 it is greedy.

    Outputs that are less than `prune_ratio` times as probable as the best complete one are pruned as soon as possible.
    """
    beam = whole_number("beam", beam, 1)
    beams = [[start] for start in starts]
    while rows := [(item, state) for item, states in enumerate(beams) for state in states if not state.is_complete]:
        logits = score(rows)
        allowed = np.zeros(logits.shape, bool)
        for row, (_, state) in zip(allowed, rows, strict=True):
            mask = grammar.allowed(state)
            row[: len(mask)] = mask
        log_p = log_softmax(logits, allowed)
        grown: list[list[S]] = [[state for state in states if state.is_complete] for states in beams]
        for (item, state), values in zip(rows, log_p, strict=True):
            for token in _top(values, beam):
                grown[item].append(grammar.extend(state, int(token), float(values[token])))
        # A log-probability only falls as an output grows, so a pruned output could not return.
        beams = [_best(states, beam, prune_ratio) for states in grown]
    return beams


def _best(states: Sequence[S], n: int, prune_ratio: float) -> list[S]:
    """Return the `n` most probable outputs, the best first, without those pruned relative to the best complete one."""
    best = sorted(states, key=lambda state: -state.log_p)[:n]
    if not prune_ratio:
        return best
    complete = next((state.log_p for state in best if state.is_complete), -math.inf)
    return [state for state in best if state.log_p >= complete + math.log(prune_ratio)]


def log_softmax(logits: Logits, allowed: Bools) -> npt.NDArray[np.float64]:
    """Return log-probabilities over the allowed entries of each row, -inf elsewhere; each row has an allowed entry.

    Logits that are not finite count as the lowest number, so that broken weights do not break the search.
    """
    lowest = -1e30
    values = np.asarray(logits, np.float64)
    if not np.isfinite(values).all():  # checked first: it takes a tenth of the time of the repair
        values = np.nan_to_num(values, nan=lowest, posinf=-lowest, neginf=lowest)
    values = np.where(allowed, values, -np.inf)
    values -= values.max(axis=1, keepdims=True)
    result: npt.NDArray[np.float64] = values - np.log(np.exp(values).sum(axis=1, keepdims=True))
    return result


def _top(row: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.intp]:
    """Return the indices of the `n` highest finite values, the highest first; of equal ones the first."""
    if n == 1:
        return np.array([row.argmax()])
    n = min(n, int(np.isfinite(row).sum()))
    return np.argsort(-row, kind="stable")[:n]
