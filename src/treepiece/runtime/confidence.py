"""From log-probabilities to confidences that mean what they say.

A model that says 0.9 is not right nine times out of ten: it was trained to fit, not to judge itself. A temperature,
fitted on rows that it was not trained on, mends that: confidence = p ** (1 / temperature).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from treepiece.decoding.parse import Parse
from treepiece.errors import BundleError


@dataclass(frozen=True)
class Temperatures:
    """One for whole parses, one for single leaves; 1 leaves probabilities as they are."""

    parse: float = 1.0
    leaf: float = 1.0

    def to_json(self) -> dict[str, float]:
        """Return the temperatures as a value that `json.dumps` can write."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Temperatures:
        """Return what `to_json` wrote."""
        try:
            read = cls(float(value["parse"]), float(value["leaf"]))
        except (KeyError, TypeError, ValueError):
            raise BundleError(
                f"the temperatures of a bundle are two numbers, parse and leaf, got {value!r:.80}"
            ) from None
        if not all(math.isfinite(number) and number > 0 for number in (read.parse, read.leaf)):
            raise BundleError(f"temperatures must be above 0, got {value!r:.80}")
        return read


def confidence(log_p: float, temperature: float) -> float:
    """Return p ** (1 / temperature).

    >>> round(confidence(math.log(0.25), 2.0), 6)
    0.5
    """
    return math.exp(min(0.0, log_p) / temperature)


def leaf_log_p(parse: Parse) -> list[float]:
    """Return the log-probability of each leaf: that of the skeleton, which gives it its label, and of its span."""
    skeleton = parse.log_p - sum(parse.leaf_log_p) if math.isfinite(parse.log_p) else -math.inf
    return [skeleton + span for span in parse.leaf_log_p]


def leaf_confidences(parse: Parse, temperature: float) -> tuple[float, ...]:
    """Return for each leaf how probable it is that it is right."""
    return tuple(confidence(log_p, temperature) for log_p in leaf_log_p(parse))


def shares(log_p: Sequence[float], temperature: float) -> list[float]:
    """Return the share of each of some readings; the shares add up to one.

    >>> shares([math.log(0.5), math.log(0.25)], 1.0)
    [0.6666666666666666, 0.3333333333333333]
    """
    best = max(log_p)
    if math.isinf(best):
        return [1 / len(log_p)] * len(log_p)
    weights = [math.exp((value - best) / temperature) for value in log_p]
    return [weight / sum(weights) for weight in weights]
