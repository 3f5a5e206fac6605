"""When a second look is worth its time (see `decoding.ranking`).

A greedy search that finds its tree p probable looks again where p < sure. More looks find more right trees, until they
are spent on trees that were right already; and each takes several times as long as a search that is sure. So of the
levels that `sure` may have, the one with the highest value is taken:

    value(sure) = sum over the rows with p < sure of (right after a look - right before it - price)

A model that has seen few rows of its labels is often sure of a wrong tree, and gets a higher level than one that has
seen many.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treepiece.decoding.ranking import SURE

PRICE = 0.01
"""A look is worth it where one more tree in a hundred is right."""
LEVELS = tuple(round(0.3 + 0.05 * step, 2) for step in range(14))
"""The levels to choose from, 0.3 to 0.95: some rows are always in doubt, and some never."""

Floats = npt.NDArray[np.float64]


def best_level(p: Floats, gains: Floats) -> float:
    """Return the level of the highest value; of equals the one nearest to the default.

    `p` is how probable the trees of a greedy search are, and `gains` what a second look does to each: 1 where it turns
    a wrong answer into a right one, -1 the other way round, and 0 else. The look at the last tree here does harm:

    >>> best_level(np.array([0.42, 0.74, 0.88]), np.array([1.0, 1.0, -1.0]))
    0.75
    """
    levels = sorted(LEVELS, key=lambda level: abs(level - SURE))
    return max(levels, key=lambda level: float((gains - PRICE)[p < level].sum()))
