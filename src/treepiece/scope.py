"""Scope: whether a text is one request, and of a kind that the parser was trained for.

A parser has a tree for every text, also for "hello" and for two requests in one. Two logistic regressions tell these
apart. They read the encoder's states, which every parse computes anyway:

    x        = [first state; mean of all states; maximum of all states]
    in_scope = sigmoid(w . x + b)         the probability that the parser knows what this text asks for
    several  = sigmoid(v . x + c)         the probability that the text is several requests in one

A parse can only be right if the text is one request in scope. So the confidence of every parse is multiplied by

    in_scope * (1 - several)

`training.scoping` fits the regressions, on training rows, joined training rows, and requests of other domains.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treepiece.errors import BundleError

States = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
_DIGITS = 6


class Scope(NamedTuple):
    """The probabilities that a text is in scope, and that it is several requests in one."""

    in_scope: float
    several: float

    @property
    def one_request(self) -> float:
        """The probability that the text is one request that the parser knows.

        >>> Scope(in_scope=0.5, several=0.5).one_request
        0.25
        """
        return self.in_scope * (1 - self.several)


@dataclass(frozen=True)
class ScopeClassifier:
    """Returns the scope of a text from the encoder's states.

    Shape: weights (2, 3 * width), biases (2,), those of `in_scope` first.
    """

    weights: Floats
    biases: Floats

    def __call__(self, states: States) -> Scope:
        """Return the scope of a text. Shape: states (n, width), those of special tokens included."""
        logits = self.weights @ pool(states) + self.biases
        in_scope, several = (_sigmoid(logit) for logit in logits.tolist())
        return Scope(in_scope, several)

    def to_bytes(self) -> bytes:
        """Return the file that `from_bytes` reads."""
        rows = zip(Scope._fields, self.weights.tolist(), self.biases.tolist(), strict=True)
        value = {name: {"bias": _short(bias), "weights": list(map(_short, row))} for name, row, bias in rows}
        return json.dumps(value).encode()

    @classmethod
    def from_bytes(cls, data: bytes, width: int) -> ScopeClassifier:
        """Return a classifier for states of a width; raise if the file has none."""
        try:
            value = json.loads(data)
            rows = [value[name] for name in Scope._fields]
            weights = np.array([row["weights"] for row in rows], np.float64)
            biases = np.array([row["bias"] for row in rows], np.float64)
        except (ValueError, RecursionError, KeyError, TypeError):
            raise BundleError("expected the weights and the bias of in_scope and several, as a JSON object") from None
        if weights.shape != (2, 3 * width) or biases.shape != (2,) or not np.isfinite(weights).all():
            raise BundleError(f"expected {3 * width} finite weights and a bias for in_scope and for several each")
        return cls(weights, biases)


def pool(states: States) -> States:
    """Return the first state, the mean and the maximum of all states. Shape: (n, width) and (3 * width,).

    >>> pool(np.array([[1, 2], [3, 0]], np.float32)).tolist()
    [1.0, 2.0, 2.0, 1.0, 3.0, 2.0]
    """
    pooled: States = np.concatenate([states[0], states.mean(axis=0), states.max(axis=0)])
    return pooled


def _sigmoid(logit: float) -> float:
    """Return the logistic function; NaN, which broken weights may give, is out of scope.

    >>> _sigmoid(0.0), _sigmoid(-1000.0), _sigmoid(math.nan)
    (0.5, 0.0, 0.0)
    """
    if math.isnan(logit):
        return 0.0
    return 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
