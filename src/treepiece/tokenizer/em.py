"""Expectation maximisation over unit probabilities (Section 2.2.2 and Algorithm 1 of the paper).

Three E-steps, from the paper's assumption on P(S, pi) to none:

- `viterbi`: all weight on the best partition, Assumption (3); the paper's own, called hard EM.
- `sampled`: K samples for each tree, the Remark of Appendix C.
- `exact`: the expectation E[n(pi, unit) | S] itself, which the recursion gives in one pass.

The M-step is the paper's, normalised counts, with one addition: some units keep a floor. Hard EM drives units that no
best partition uses to zero, and a tree that needs one would then have no partition at all. The floor is a constraint on
the simplex and the M-step maximises under it, so the objective still never falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from treepiece.errors import OptionError
from treepiece.options import whole_number
from treepiece.tokenizer.lattice import Floats, Ints, Lattice, one_hot

Bools = npt.NDArray[np.bool_]

_GRID = 2.0**32
_FLOOR_COUNT = 0.1
"""The floor is this count among the counts that EM starts from."""


class EmMethod(StrEnum):
    """Which E-step."""

    VITERBI = "viterbi"
    SAMPLED = "sampled"
    EXACT = "exact"


@dataclass(frozen=True)
class EmConfig:
    """When to stop (N0 and epsilon0 in the paper), and how many samples a tree for `sampled` (K)."""

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
class Problem:
    """The trees to explain: a lattice, the node of each tree, and how often the tree occurs."""

    lattice: Lattice
    roots: Ints
    counts: Floats


@dataclass(frozen=True)
class Fit:
    """The log-probability of each unit, and the objective before each M-step."""

    log_p: Floats
    objectives: tuple[float, ...]


def fit_units(
    problem: Problem,
    first_counts: Floats,
    floored: Bools,
    config: EmConfig,
    rng: np.random.Generator,
    on_iteration: Callable[[int], None] | None = None,
) -> Fit:
    """Return the probabilities that EM finds, starting from `first_counts` (F0); units in `floored` keep a floor."""
    floor = _FLOOR_COUNT / first_counts.sum()
    log_p = log_on_grid(normalise(first_counts, floored, floor))
    objectives: list[float] = []
    for iteration in range(config.iterations):
        objective, counts = _expect(problem, log_p, config, rng)
        gain = objective - objectives[-1] if objectives else math.inf
        objectives.append(objective)
        log_p = log_on_grid(normalise(counts, floored, floor))
        if on_iteration:
            on_iteration(iteration + 1)
        if gain <= config.epsilon:
            break
    return Fit(log_p, tuple(objectives))


def _expect(problem: Problem, log_p: Floats, config: EmConfig, rng: np.random.Generator) -> tuple[float, Floats]:
    """Return the objective, sum of log P(S), and the expected counts of the units: the E-step."""
    lattice, roots, counts = problem.lattice, problem.roots, problem.counts
    hard = config.method is EmMethod.VITERBI
    scores = lattice.evaluate(log_p, np.maximum if hard else np.logaddexp)
    objective = float(scores.node[roots] @ counts)
    n_units = len(log_p)
    if hard:
        shares = one_hot(lattice.best_edges(scores), len(scores.edge))
        return objective, lattice.expected_counts(shares, roots, counts, n_units)
    shares = lattice.shares(scores)
    if config.method is EmMethod.EXACT:
        return objective, lattice.expected_counts(shares, roots, counts, n_units)
    return objective, lattice.sampled_counts(shares, roots, counts * config.samples, n_units, rng) / config.samples


def normalise(counts: Floats, floored: Bools, floor: float) -> Floats:
    """Return the simplex that maximises sum(counts * log p) with p >= floor where `floored`: the M-step.

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

    Sums of such numbers are exact in double precision whatever their order, as long as they stay below two million,
    so that equally good partitions have equal scores and a tie is settled by rule, on every platform alike.
    """
    with np.errstate(divide="ignore"):
        return np.round(np.log(p) * _GRID) / _GRID
