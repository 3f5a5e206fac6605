"""Which rows make up each batch.

Batches hold utterances of similar length, because all of a batch is padded to its longest one. Rows are shuffled,
sorted by length within windows of fifty batches, and then the batches are shuffled. The plan of an epoch depends only
on the seed, the shuffle_seed and the number of the epoch, so that a run can continue at any batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_WINDOW = 50


def plan_epoch(
    lengths: Sequence[int], batch_size: int, *, seed: int, epoch: int, shuffle_seed: int = 0, least: int = 1
) -> list[list[int]]:
    """Return the batches of an epoch as lists of indices into `lengths`, each index once.

    A last batch of fewer than `least` rows is merged into the one before it: each of several processes needs a row.

    >>> plan_epoch([3, 9, 3, 9], 2, seed=0, epoch=0)
    [[1, 3], [2, 0]]
    """
    rng = np.random.default_rng([seed, epoch, shuffle_seed])
    order = rng.permutation(len(lengths))
    sizes = np.asarray(lengths)[order]
    batches: list[list[int]] = []
    for start in range(0, len(order), _WINDOW * batch_size):
        window = slice(start, start + _WINDOW * batch_size)
        by_length = order[window][np.argsort(sizes[window], kind="stable")].tolist()
        batches += [by_length[place : place + batch_size] for place in range(0, len(by_length), batch_size)]
    if len(batches) > 1 and len(batches[-1]) < least:
        last = batches.pop()
        batches[-1] += last
    return [batches[place] for place in rng.permutation(len(batches))]
