"""How a tokenizer is trained."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from treepiece.errors import OptionError
from treepiece.options import one_of, whole_number
from treepiece.tokenizer.em import EmConfig, EmMethod

_LARGEST_THETA = 1_000_000


class Expansion(StrEnum):
    """Which placeholder patterns become units."""

    DEFAULT = "default"
    PAPER = "paper"


@dataclass(frozen=True)
class TokenizerConfig:
    """Settings of `TreePieceTokenizer.train`; the defaults are the paper's where it has one.

    `samples` and `theta` are for the `paper` expansion (K0, theta0; 0 samples: best partitions only), `samples` also
    for `sampled` EM (K); `min_count` is for the `default` expansion.
    """

    merges: int = 600
    em: EmMethod = EmMethod.VITERBI
    em_iterations: int = 30
    em_epsilon: float = 0.01
    expansion: Expansion = Expansion.DEFAULT
    samples: int = 10
    theta: float = 0.15
    min_count: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "em", one_of("em", self.em, EmMethod))
        set_(self, "expansion", one_of("expansion", self.expansion, Expansion))
        set_(self, "merges", whole_number("merges", self.merges, 0))
        set_(self, "samples", whole_number("samples", self.samples, 0, 1000))
        set_(self, "min_count", whole_number("min_count", self.min_count, 1))
        set_(self, "seed", whole_number("seed", self.seed, 0))
        check_theta(self.theta)
        _ = self.em_config

    @property
    def em_config(self) -> EmConfig:
        """The settings of EM alone."""
        return EmConfig(self.em, self.em_iterations, self.em_epsilon, max(self.samples, 1))


def check_theta(theta: float) -> None:
    """Raise unless `theta` can be the exponent of a probability; far below the bound only the best is left."""
    if not (isinstance(theta, int | float | np.number) and 0 <= theta <= _LARGEST_THETA):
        raise OptionError(f"theta must be a number from 0 to {_LARGEST_THETA:,}, got {theta!r}")
