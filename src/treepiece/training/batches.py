"""Which rows make up each batch.

Batches hold utterances of about the same length, because a batch costs as much as its longest one. Rows are shuffled,
sorted by length within windows of fifty batches, and the batches shuffled again. The plan of an epoch follows from the
seed, the branch and the number of the epoch alone, so that a run can go on at any batch of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_WINDOW = 50


def plan_epoch(
    lengths: Sequence[int], batch: int, *, seed: int, epoch: int, branch: int = 0, least: int = 1
) -> list[list[int]]:
    """Return the batches of an epoch as lists of places in `lengths`, each place once.

    A last batch of fewer than `least` rows goes into the one before it: with several processes each must get a row.

    >>> plan_epoch([3, 9, 3, 9], 2, seed=0, epoch=0)
    [[1, 3], [2, 0]]
    """
    rng = np.random.default_rng([seed, epoch, branch])
    order = rng.permutation(len(lengths))
    sizes = np.asarray(lengths)[order]
    batches: list[list[int]] = []
    for start in range(0, len(order), _WINDOW * batch):
        window = slice(start, start + _WINDOW * batch)
        by_length = order[window][np.argsort(sizes[window], kind="stable")].tolist()
        batches += [by_length[place : place + batch] for place in range(0, len(by_length), batch)]
    if len(batches) > 1 and len(batches[-1]) < least:
        last = batches.pop()
        batches[-1] += last
    return [batches[place] for place in rng.permutation(len(batches))]
