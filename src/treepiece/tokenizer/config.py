"""How a tokenizer is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from treepiece.errors import OptionError
from treepiece.tokenizer.em import EmConfig, EmMethod

_Member = TypeVar("_Member", bound=StrEnum)


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
        object.__setattr__(self, "em", _member(EmMethod, self.em, "em"))
        object.__setattr__(self, "expansion", _member(Expansion, self.expansion, "expansion"))
        for name, least in (("merges", 0), ("samples", 0), ("min_count", 1), ("seed", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise OptionError(f"{name} must be a whole number, {least} or more, got {value!r}")
        check_theta(self.theta)
        _ = self.em_config

    @property
    def em_config(self) -> EmConfig:
        """The settings of EM alone."""
        return EmConfig(self.em, self.em_iterations, self.em_epsilon, max(self.samples, 1))


def check_theta(theta: float) -> None:
    """Raise unless `theta` can be the exponent of a probability."""
    if not (isinstance(theta, int | float) and math.isfinite(theta) and theta >= 0):
        raise OptionError(f"theta must be a finite number, 0 or more, got {theta!r}")


def _member(kind: type[_Member], value: str, name: str) -> _Member:
    try:
        return kind(value)
    except ValueError:
        raise OptionError(f"{name} must be one of {', '.join(kind)}, got {value!r}") from None
