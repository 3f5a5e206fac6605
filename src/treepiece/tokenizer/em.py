"""Expectation-maximization of the TreePiece simplex p (Section 2.2.2 and Algorithm 1 of the paper).

Each iteration solves Equation (1), p_{i+1} = argmax_p sum_S E[log P(S, pi; p) | S; p_i]. By the lemma of Appendix B the
solution is the normalised expected counts sum_S E[n(pi, u) | S; p_i]. There are three E-steps:

- `viterbi`: hard EM, the paper's choice. Assumption (3) puts all probability on the best partition.
- `sampled`: K sampled partitions per tree (the remark of Appendix C).
- `exact`: the expectation itself, in one outside pass over the lattice.

The M-step normalises the counts, with one addition: some units keep a floor. Hard EM drives units that no best
partition uses to probability zero, and a tree that needs one would have no partition at all. The floor is a constraint
on the simplex under which the M-step maximises, so the objective still never decreases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from treepiece.checks import whole_number
from treepiece.errors import OptionError
from treepiece.tokenizer.lattice import Floats, Ints, Lattice, one_hot

Bools = npt.NDArray[np.bool_]

_GRID = 2.0**32
_FLOOR_COUNT = 0.1
"""The floor is the probability that this count has among the initial counts."""


class EmMethod(StrEnum):
    """The E-step."""

    VITERBI = "viterbi"
    SAMPLED = "sampled"
    EXACT = "exact"


@dataclass(frozen=True)
class EmConfig:
    """The E-step, when to stop (N0 and epsilon0 in the paper), and the samples per tree of `sampled` (K)."""

    method: EmMethod = EmMethod.VITERBI
    iterations: int = 30
    epsilon: float = 0.01
    samples: int = 10

    def __post_init__(self) -> None:
        for name in ("iterations", "samples"):
            object.__setattr__(self, name, whole_number(f"EM {name}", getattr(self, name), 1))
        if not (isinstance(self.epsilon, int | float) and math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise OptionError(f"EM epsilon must be a finite number, 0 or more, got {self.epsilon!r}")


@dataclass(frozen=True)
class CorpusLattice:
    """The lattice of a corpus, the node of each tree, and the count of each tree."""

    lattice: Lattice
    roots: Ints
    counts: Floats


@dataclass(frozen=True)
class EmResult:
    """The log-probability of each unit, and the objective, sum of log P(S), before each M-step."""

    log_p: Floats
    objectives: tuple[float, ...]


def fit_units(
    corpus: CorpusLattice,
    first_counts: Floats,
    floored: Bools,
    config: EmConfig,
    rng: np.random.Generator,
    on_iteration: Callable[[int], None] | None = None,
) -> EmResult:
    """Return the log-probabilities after EM from the initial counts F0; units in `floored` keep a floor."""
    floor = _FLOOR_COUNT / first_counts.sum()
    log_p = log_on_grid(normalise(first_counts, floored, floor))
    objectives: list[float] = []
    for iteration in range(config.iterations):
        objective, counts = _expect(corpus, log_p, config, rng)
        gain = objective - objectives[-1] if objectives else math.inf
        objectives.append(objective)
        log_p = log_on_grid(normalise(counts, floored, floor))
        if on_iteration:
            on_iteration(iteration + 1)
        if gain <= config.epsilon:
            break
    return EmResult(log_p, tuple(objectives))


def _expect(corpus: CorpusLattice, log_p: Floats, config: EmConfig, rng: np.random.Generator) -> tuple[float, Floats]:
    """Return the objective and the expected count of each unit: the E-step."""
    lattice, roots, counts = corpus.lattice, corpus.roots, corpus.counts
    hard = config.method is EmMethod.VITERBI
    values = lattice.evaluate(log_p, np.maximum if hard else np.logaddexp)
    objective = float(values.node[roots] @ counts)
    if hard:
        probabilities = one_hot(lattice.best_edges(values), len(values.edge))
    else:
        probabilities = lattice.edge_probabilities(values)
    n_units = len(log_p)
    if config.method is EmMethod.SAMPLED:
        total = lattice.sampled_counts(probabilities, roots, counts * config.samples, n_units, rng)
        return objective, total / config.samples
    return objective, lattice.expected_counts(probabilities, roots, counts, n_units)


def normalise(counts: Floats, floored: Bools, floor: float) -> Floats:
    """Return the simplex p that maximises sum(counts * log p) subject to p >= floor where `floored`: the M-step.

    Units that would fall below the floor are set to it; the others share the rest in proportion to their counts.

    >>> normalise(np.array([4.0, 2.0, 0.0]), np.array([False, False, True]), 0.25).tolist()
    [0.5, 0.25, 0.25]
    """
    held = np.zeros_like(floored)
    while True:
        scale = (1.0 - floor * held.sum()) / counts[~held].sum()
        p = np.where(held, floor, counts * scale)
        low = floored & ~held & (p < floor)
        if not low.any():
            return p
        held |= low


def log_on_grid(p: Floats) -> Floats:
    """Return log p rounded to a multiple of 2**-32.

    Sums of such numbers below two million are exact in double precision, whatever their order. So equally good
    partitions have equal scores, and ties are broken by the same rule on every platform.
    """
    with np.errstate(divide="ignore"):
        return np.round(np.log(p) * _GRID) / _GRID
