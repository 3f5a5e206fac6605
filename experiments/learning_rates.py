"""A search for the learning rates of a parser's modules, one module after the other, as the paper tunes them.

A run with the rates in `STARTS` comes first. Then each module in turn tries a third of its rate and three times its
rate, with the best rates so far for the others. Runs are small: some rows of the train split for two epochs, scored on
other rows of the train split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from experiments.parts import Json

STARTS = {
    "treepiece": {"encoder": 1.5e-4, "units": 5e-4, "spans": 5e-4},
    "ar": {"encoder": 1.5e-4, "decoder": 5e-4},
    "nar": {"encoder": 1.5e-4, "length": 5e-4, "decoder": 5e-4},
}
"""Where the search begins for each kind of model."""
FACTORS = (1 / 3, 3.0)
"""What a rate is multiplied by; with the rate itself a module tries three."""

Rates = Mapping[str, float]


@dataclass(frozen=True)
class Run:
    """The rates of a run, by module, and its score."""

    rates: Rates
    em: float


def search(start: Rates, score: Callable[[Rates], float], factors: Sequence[float]) -> Json:
    """Return the best rates, their score, and all runs; of equal scores the first wins.

    >>> found = search({"encoder": 1.0, "units": 1.0}, lambda it: -abs(it["encoder"] - 3) - it["units"], FACTORS)
    >>> found["best"], len(found["runs"])
    ({'encoder': 3.0, 'units': 0.333}, 5)
    """

    def run(rates: Rates) -> Run:
        return Run(rates, score(rates))

    best = run(dict(start))
    runs = [best]
    for module, rate in start.items():
        runs += [run({**best.rates, module: float(f"{rate * factor:.3g}")}) for factor in factors]
        best = max(runs, key=lambda one: one.em)
    return {"start": dict(start), "best": best.rates, "em": best.em, "runs": [asdict(one) for one in runs]}
