"""Greedy and beam search, for many utterances at once.

What is searched is a grammar's business: trees of units, where there is no end token because a tree is complete when
no placeholder is open, or sequences of labels, pointers and brackets. Scores are normalised over what the grammar
allows, so that they are probabilities of whole outputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from treepiece.decoding.grammar import Bools, Partial, UnitGrammar
from treepiece.options import whole_number
from treepiece.tokenizer.assembly import Order, assemble
from treepiece.trees.node import Node

Logits = npt.NDArray[np.floating]


class State(Protocol):
    """An output that is being written."""

    @property
    def log_p(self) -> float:
        """The log-probability of what is written."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to write."""


S = TypeVar("S", bound=State)

Score = Callable[[Sequence[tuple[int, S]]], Logits]
"""Given (utterance, output so far) pairs, returns a row for each pair with the logits of the next token."""


class Grammar(Protocol[S]):
    """Says what may come next; from every state that is not complete something may, and completion is near."""

    def allowed(self, state: S) -> Bools:
        """Return which tokens may come next."""

    def extend(self, state: S, token: int, log_p: float) -> S:
        """Return the output with one more token."""


@dataclass(frozen=True)
class Candidate:
    """A skeleton, the best of the unit sequences that make it, and the log-probability of them all."""

    skeleton: Node
    unit_ids: tuple[int, ...]
    log_p: float


def search_units(
    n_utterances: int,
    score: Score[Partial],
    grammar: UnitGrammar,
    *,
    beam: int = 1,
    faintest: float = 0.0,
    steps: int | None = None,
) -> list[list[Candidate]]:
    """Return for each utterance up to `beam` different skeletons, the most probable first (see `beam_search`)."""
    starts = [grammar.start()] * n_utterances
    found = beam_search(starts, score, grammar, beam=beam, faintest=faintest, steps=steps)
    return [merge_equal_trees(partials, grammar) for partials in found]


def beam_search(
    starts: Sequence[S],
    score: Score[S],
    grammar: Grammar[S],
    *,
    beam: int = 1,
    faintest: float = 0.0,
    steps: int | None = None,
) -> list[list[S]]:
    """Return for each start up to `beam` complete outputs, the most probable first; with a beam of 1 it is greedy.

    Outputs that are less than `faintest` times as probable as the best complete one are left out as soon as that is
    known. With `steps` it gives up on outputs that are not complete after so many, and there may be none for a start.
    """
    beam = whole_number("beam", beam, 1)
    beams = [[start] for start in starts]
    for step in itertools.count():
        rows = [(item, state) for item, states in enumerate(beams) for state in states if not state.is_complete]
        if not rows:
            break
        if step == steps:
            return [[state for state in states if state.is_complete] for states in beams]
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
        # A log-probability only falls as an output grows, so what is left out now could not come back.
        beams = [_best(states, beam, faintest) for states in grown]
    return beams


def _best(states: Sequence[S], n: int, faintest: float) -> list[S]:
    """Return the `n` most probable outputs, the best first, without those that the best complete one outshines."""
    best = sorted(states, key=lambda state: -state.log_p)[:n]
    if not faintest:
        return best
    complete = next((state.log_p for state in best if state.is_complete), -math.inf)
    return [state for state in best if state.log_p >= complete + math.log(faintest)]


def log_softmax(logits: Logits, allowed: Bools) -> npt.NDArray[np.float64]:
    """Return log-probabilities over the allowed entries of each row, -inf elsewhere; each row has an allowed entry.

    Logits that are not finite count as the lowest there can be, so that broken weights do not break the search.
    """
    lowest = -1e30
    values = np.asarray(logits, np.float64)
    if not np.isfinite(values).all():  # asked first: it costs a tenth of what mending does
        values = np.nan_to_num(values, nan=lowest, posinf=-lowest, neginf=lowest)
    values = np.where(allowed, values, -np.inf)
    values -= values.max(axis=1, keepdims=True)
    result: npt.NDArray[np.float64] = values - np.log(np.exp(values).sum(axis=1, keepdims=True))
    return result


def _top(row: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.intp]:
    """Return the places of the `n` highest finite values, the highest first; of equal ones the first."""
    if n == 1:
        return np.array([row.argmax()])
    n = min(n, int(np.isfinite(row).sum()))
    return np.argsort(-row, kind="stable")[:n]


def merge_equal_trees(beam: Sequence[Partial], grammar: UnitGrammar) -> list[Candidate]:
    """Return the trees of a beam; sequences that make the same tree are one candidate with their joint probability."""
    merged: dict[Node, Candidate] = {}
    for partial in beam:
        skeleton = assemble(partial.unit_ids, grammar.vocabulary, Order.PRE)
        first = merged.get(skeleton)
        if first is None:
            merged[skeleton] = Candidate(skeleton, partial.unit_ids, partial.log_p)
        else:
            joint = float(np.logaddexp(first.log_p, partial.log_p))
            merged[skeleton] = Candidate(skeleton, first.unit_ids, joint)
    return sorted(merged.values(), key=lambda candidate: -candidate.log_p)
