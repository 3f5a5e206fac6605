"""The inputs and outputs of decoding: its settings, derivations of skeletons, and hypotheses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from treepiece.errors import BundleError
from treepiece.trees.align import Span
from treepiece.trees.node import Node


@dataclass(frozen=True)
class Temperatures:
    """Turn probabilities into calibrated confidences, p ** (1 / temperature): of whole parses, and of single leaves."""

    parse: float = 1.0
    leaf: float = 1.0


@dataclass(frozen=True)
class DecodingConfig:
    """The settings of decoding, fitted after training on held-out rows and stored in the bundle.

    A greedy parse whose skeleton is less probable than `rerank_threshold` is reranked: a beam search of width `beam`
    proposes candidates, those less than `prune_ratio` times as probable as the best are dropped, and the reranker
    scores the rest. Its log-probability has the weight `reranker_weight`, the parser's own the remainder. A threshold
    of 0 turns reranking off, a threshold of 1 reranks every parse.
    """

    beam: int = 8
    rerank_threshold: float = 0.6
    prune_ratio: float = 0.02
    reranker_weight: float = 0.5
    temperatures: Temperatures = field(default_factory=Temperatures)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a value that `json.dumps` can write."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> DecodingConfig:
        """Return the settings that `to_json` wrote; raise `BundleError` with the name of a wrong setting.

        >>> DecodingConfig.from_json(DecodingConfig(beam=4).to_json()).beam
        4
        """
        _check_names(value, cls, "")
        temperatures = value["temperatures"]
        _check_names(temperatures, Temperatures, "temperatures.")
        if type(value["beam"]) is not int or not 1 <= value["beam"] <= 1000:
            raise BundleError(f"beam: expected a whole number from 1 to 1000, found {value['beam']!r:.40}")
        for name in ("rerank_threshold", "prune_ratio", "reranker_weight"):
            _check_number(name, value[name], 0, 1)
        for name, number in temperatures.items():
            _check_number(f"temperatures.{name}", number, 1e-3, 1e3)
        return cls(**{**value, "temperatures": Temperatures(**temperatures)})


def _check_names(value: object, kind: type[DecodingConfig] | type[Temperatures], prefix: str) -> None:
    wanted = {field.name for field in fields(kind)}
    if not isinstance(value, Mapping):
        raise BundleError(f"{prefix.rstrip('.') or 'the file'}: expected settings by name, found {value!r:.40}")
    for name in sorted(wanted ^ set(value)):
        raise BundleError(f"{prefix}{name}: {'missing' if name in wanted else 'there is no such setting'}")


def _check_number(name: str, value: object, least: float, most: float) -> None:
    if type(value) not in (int, float) or not least <= value <= most:  # type: ignore[operator]  # NaN fails too
        raise BundleError(f"{name}: expected a number from {least} to {most}, found {value!r:.40}")


@dataclass(frozen=True)
class Derivation:
    """A skeleton, its best unit sequence, and the log-probability of all of its sequences that were found."""

    skeleton: Node
    unit_ids: tuple[int, ...]
    log_p: float


@dataclass(frozen=True)
class Hypothesis:
    """A frame over subwords, with the scores of each part of the model.

    `unit_log_p` is the log-probability of the skeleton, `span_log_p` that of each leaf's span given the skeleton, and
    `reranker_log_p` the reranker's of the whole frame, if it was reranked. `log_p` is the log-probability of the frame
    and `leaf_log_p` that of each leaf, label and span, after all of these have been combined. `passes` counts its
    decoder passes. A baseline has no `unit_ids`.
    """

    skeleton: Node
    spans: tuple[Span, ...]
    unit_ids: tuple[int, ...]
    unit_log_p: float
    span_log_p: tuple[float, ...]
    log_p: float
    leaf_log_p: tuple[float, ...]
    passes: int
    reranker_log_p: float | None = None

    @property
    def has_reranker_score(self) -> bool:
        """Whether the reranker's score counts: broken weights may give NaN."""
        return self.reranker_log_p is not None and math.isfinite(self.reranker_log_p)

    @classmethod
    def of_parts(
        cls,
        skeleton: Node,
        spans: tuple[Span, ...],
        unit_log_p: float,
        span_log_p: tuple[float, ...],
        *,
        passes: int,
        unit_ids: tuple[int, ...] = (),
    ) -> Hypothesis:
        """Return a hypothesis without reranking: its parts are independent, so their probabilities multiply."""
        return cls(
            skeleton,
            spans,
            unit_ids,
            unit_log_p,
            span_log_p,
            unit_log_p + sum(span_log_p),
            tuple(unit_log_p + one for one in span_log_p),
            passes,
        )


@dataclass(frozen=True)
class NBest:
    """The result of a search for one utterance: the greedy skeleton's log-probability, and hypotheses.

    They are the greedy hypothesis alone or, if its skeleton is not probable enough, those of a beam, in the order of
    the beam and not yet reranked.
    """

    greedy_log_p: float
    hypotheses: tuple[Hypothesis, ...]

    @property
    def is_reranked(self) -> bool:
        """Whether there are several hypotheses and the reranker has scored all of them."""
        return len(self.hypotheses) > 1 and all(one.has_reranker_score for one in self.hypotheses)
