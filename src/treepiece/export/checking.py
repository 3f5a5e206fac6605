"""Whether graphs answer as PyTorch does, and what they score."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from treepiece.decoding.parse import Parse
from treepiece.errors import BundleError
from treepiece.evaluation.calibration import answered, expected_calibration_error, fit_temperature
from treepiece.evaluation.comparison import compare
from treepiece.evaluation.outcomes import Outcome
from treepiece.models.trained import TrainedModel
from treepiece.runtime.confidence import Temperatures, leaf_log_p
from treepiece.runtime.graphs import Precision, as_ids
from treepiece.runtime.parser import Parser
from treepiece.text import Subwords
from treepiece.training.examples import Example

TOLERANCE = 1e-3
"""How far the log-probability of a parse may be from PyTorch's in single precision."""
LEAST_AGREEMENT = 0.9
"""The share of int8's trees that must be those of PyTorch."""
LEAST = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95)
"""The confidences to ask for with `min_confidence` of which a card says what comes of them."""
_BATCH = 64
_ON_THE_EDGE = 500
_FEW = 20
_REMEDIES = {"int8": "leave them out with --no-int8", "half": "keep them with --weights float"}
"""What to do where rounding does too much harm."""

OnRows = Callable[[int], None]


@dataclass(frozen=True)
class Parity:
    """How graphs, or rounded weights, compare with the trained model on the same rows."""

    rows: int
    same_trees: int
    largest_difference: float
    """Of the log-probabilities, where the trees are the same."""

    @property
    def agreement(self) -> float:
        """The share of rows with the same tree."""
        return self.same_trees / max(1, self.rows)


def parse_with_torch(trained: TrainedModel, utterances: Sequence[Subwords], on_rows: OnRows) -> list[Parse]:
    """Return the best parse of each utterance."""
    parses: list[Parse] = []
    for start in range(0, len(utterances), _BATCH):
        parses += [best for best, *_ in trained.model.parse(utterances[start : start + _BATCH])]
        on_rows(len(parses))
    return parses


def parse_with_graphs(parser: Parser, utterances: Sequence[Subwords], on_rows: OnRows) -> list[Parse]:
    """Return the best parse of each utterance, each parsed alone."""
    parses = []
    for utterance in utterances:
        parses.append(parser.model.parse(as_ids([utterance.ids]))[0][0])
        on_rows(len(parses))
    return parses


def check_parity(
    wanted: Sequence[Parse], found: Sequence[Parse], precision: str, least: float, *, what: str = "graphs"
) -> Parity:
    """Return how parses compare; raise where the graphs, or weights, must not be used.

    In single precision the trees must be the same, but where two trees have the same probability either may win, and
    one row in `_ON_THE_EDGE`, though one of `_FEW` too, may be on an edge: just sure enough for one and not for the
    other to go without a second look, or with two lengths that are equally probable. In int8 and in half precision a
    few doubtful ones may differ: the share of equal trees must be `least`.
    """
    is_same = [(a.skeleton, a.spans) == (b.skeleton, b.spans) for a, b in zip(wanted, found, strict=True)]
    gaps = [_gap(a, b) for a, b in zip(wanted, found, strict=True)]
    largest = max((gap for gap, same in zip(gaps, is_same, strict=True) if same), default=0.0)
    parity = Parity(len(wanted), sum(is_same), largest)
    if precision == Precision.FLOAT:
        n_edges = math.ceil(len(gaps) / _ON_THE_EDGE) if len(gaps) >= _FEW else 0
        worst = sorted(gaps, reverse=True)[n_edges] if gaps else 0.0
        if worst > TOLERANCE:
            raise BundleError(
                f"the {what} in {precision} do not answer as PyTorch does: {parity.rows - parity.same_trees} of "
                f"{parity.rows} trees differ, and log-probabilities by {worst:.2g} (at most {TOLERANCE}); "
                "nothing was written: this is a fault in treepiece, please report it"
            )
    elif parity.agreement < least:
        raise BundleError(
            f"the {what} in {precision} give the tree of PyTorch for {parity.agreement:.1%} of the rows only "
            f"(at least {least:.1%}); nothing was written: {_REMEDIES[precision]}"
        )
    return parity


def _gap(a: Parse, b: Parse) -> float:
    if a.log_p == b.log_p:  # which may be infinite
        return 0.0
    gap = abs(a.log_p - b.log_p)
    return gap if np.isfinite(gap) else np.inf


@dataclass(frozen=True)
class Quality:
    """Scores of a runtime on rows whose answer is known, and what was fitted on them.

    Temperatures are fitted on every other row; the calibration errors are of the rows in between, and so is `answered`:
    for each confidence to ask for, the share of texts that are answered, and the share of those that is right.
    """

    rows: int
    em: float
    em_s: float
    temperatures: Temperatures
    parse_error_before: float
    parse_error_after: float
    leaf_error_before: float
    leaf_error_after: float
    answered: tuple[tuple[float, float, float], ...] = field(default=(), kw_only=True)

    def to_json(self) -> dict[str, Any]:
        """Return the scores as a value that `json.dumps` can write."""
        return asdict(self)


def measure(examples: Sequence[Example], parses: Sequence[Parse]) -> Quality:
    """Return the scores of parses and the temperatures that suit them."""
    outcomes = [
        compare(
            example.frame,
            parse.skeleton,
            [example.subwords.chars(span) for span in parse.spans],
            domain=None,
            passes=parse.passes,
        )
        for example, parse in zip(examples, parses, strict=True)
    ]
    fitted = [_judged(parses[half::2], outcomes[half::2]) for half in (0, 1)]
    parse, leaf = (fit_temperature(log_p, is_right) for log_p, is_right in fitted[0])
    errors = [
        expected_calibration_error(np.exp(np.minimum(log_p, 0) / temperature), is_right)
        for (log_p, is_right), best in zip(fitted[1], (parse, leaf), strict=True)
        for temperature in (1.0, best)
    ]
    em = float(np.mean([outcome.is_exact for outcome in outcomes]))
    em_s = float(np.mean([outcome.is_skeleton for outcome in outcomes]))
    log_p, is_right = fitted[1][0]
    confidences = np.exp(np.minimum(log_p, 0) / parse)
    some = tuple((least, *answered(confidences, is_right, least)) for least in LEAST) if len(is_right) else ()
    return Quality(len(outcomes), em, em_s, Temperatures(parse, leaf), *errors, answered=some)


def _judged(parses: Sequence[Parse], outcomes: Sequence[Outcome]) -> list[tuple[Any, Any]]:
    """Return log-probabilities and whether the answer was right, of whole parses and of leaves."""
    whole = np.array([parse.log_p for parse in parses]), np.array([outcome.is_exact for outcome in outcomes], bool)
    log_p: list[float] = []
    is_right: list[bool] = []
    for parse, outcome in zip(parses, outcomes, strict=True):
        gold = {(leaf.label, leaf.chars) for leaf in outcome.gold.leaves}
        values = leaf_log_p(parse)
        log_p += values
        is_right += [(leaf.label, leaf.chars) in gold for leaf in outcome.predicted.leaves[: len(values)]]
    return [whole, (np.array(log_p), np.array(is_right, bool))]
