"""Greedy and beam search over units, for many utterances at once.

There is no end token: a tree is complete when no placeholder is open. Scores are normalised over the units that the
grammar allows, so that they are probabilities of trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treepiece.decoding.grammar import Bools, Partial, UnitGrammar
from treepiece.options import whole_number
from treepiece.tokenizer.assembly import Order, assemble
from treepiece.trees.node import Node

Logits = npt.NDArray[np.floating]

ScoreUnits = Callable[[Sequence[tuple[int, Partial]]], Logits]
"""Given (utterance, tree so far) pairs, returns a row for each pair with the logits of the next unit."""


@dataclass(frozen=True)
class SearchConfig:
    """How wide to search, and how many nodes a tree may have."""

    beam: int = 1
    budget: int = 64

    def __post_init__(self) -> None:
        for name in ("beam", "budget"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), 1))


@dataclass(frozen=True)
class Candidate:
    """A skeleton, the best of the unit sequences that make it, and the log-probability of them all."""

    skeleton: Node
    unit_ids: tuple[int, ...]
    log_p: float


def search_units(
    n_utterances: int, score: ScoreUnits, grammar: UnitGrammar, config: SearchConfig
) -> list[list[Candidate]]:
    """Return for each utterance up to `beam` different skeletons, the most probable first."""
    grammar.check_budget(config.budget)
    beams = [[grammar.start()] for _ in range(n_utterances)]
    while True:
        rows = [(item, partial) for item, beam in enumerate(beams) for partial in beam if not partial.is_complete]
        if not rows:
            return [_candidates(beam, grammar) for beam in beams]
        allowed = np.array([grammar.allowed(partial, config.budget) for _, partial in rows])
        log_p = log_softmax(score(rows), allowed)
        grown: list[list[Partial]] = [[partial for partial in beam if partial.is_complete] for beam in beams]
        for (item, partial), row in zip(rows, log_p, strict=True):
            for unit in _top(row, config.beam):
                grown[item].append(grammar.extend(partial, int(unit), float(row[unit])))
        # A log-probability only falls as a tree grows, so a complete tree that is left out now could not come back.
        beams = [sorted(beam, key=lambda partial: -partial.log_p)[: config.beam] for beam in grown]


def log_softmax(logits: Logits, allowed: Bools) -> npt.NDArray[np.float64]:
    """Return log-probabilities over the allowed entries of each row, -inf elsewhere; each row has an allowed entry.

    Logits that are not finite count as the lowest there can be, so that broken weights do not break the search.
    """
    lowest = -1e30
    values = np.nan_to_num(np.asarray(logits, np.float64), nan=lowest, posinf=-lowest, neginf=lowest)
    values = np.where(allowed, np.clip(values, lowest, -lowest), -np.inf)
    values -= values.max(axis=1, keepdims=True)
    result: npt.NDArray[np.float64] = values - np.log(np.exp(values).sum(axis=1, keepdims=True))
    return result


def _top(row: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.intp]:
    """Return the places of the `n` highest finite values, the highest first; of equal ones the first."""
    n = min(n, int(np.isfinite(row).sum()))
    if n == 1:
        return np.array([row.argmax()])
    return np.argsort(-row, kind="stable")[:n]


def _candidates(beam: Sequence[Partial], grammar: UnitGrammar) -> list[Candidate]:
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
