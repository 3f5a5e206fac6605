"""Finds the spans of all utterance leaves jointly.

Leaves are in order from left to right and do not overlap. Taking the best start and the best end of each leaf
independently can break both rules; a dynamic program over leaves and tokens finds the best spans that satisfy them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from treepiece.trees.align import Span

Floats = npt.NDArray[np.float64]

EMPTY = -1e9
"""The score of an empty span: taken only if there are more leaves than tokens."""
_LARGEST = 1e4


def best_spans(starts: npt.NDArray[np.floating], ends: npt.NDArray[np.floating]) -> tuple[list[Span], list[float]]:
    """Return the best half-open spans that are in order and do not overlap, and the score of each.

    `starts` and `ends` have one row per leaf and one column per token. The best token of each leaf here is 0:

    >>> best_spans(np.array([[3.0, 0.0], [2.0, 1.0]]), np.array([[3.0, 0.0], [2.0, 1.0]]))
    ([Span(start=0, end=1), Span(start=1, end=2)], [6.0, 2.0])
    """
    n_leaves, n_tokens = starts.shape
    if n_leaves and n_tokens:
        apart = _each_by_itself(starts, ends)
        if apart is not None:
            return apart
    starts, ends = _finite(starts), _finite(ends)
    # value[t]: the best score of the leaves so far if the next one starts at token t or later
    value: Floats = np.zeros(n_tokens + 1)
    steps: list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]] = []
    for leaf in range(n_leaves):
        opened, opened_at = _running_best(value[:-1] + starts[leaf])  # by the last token, the best first token
        closed, closed_at = _running_best(opened + ends[leaf])
        empty = value + EMPTY
        after = empty.copy()
        after[1:] = np.maximum(empty[1:], closed)
        ended = np.full(n_tokens + 1, -1)
        ended[1:] = np.where(closed >= empty[1:], closed_at, -1)
        steps.append((opened_at, ended))
        value = after
    spans = _trace(steps, n_tokens)
    return spans, [
        float(start[span.start] + end[span.end - 1]) if span.start < span.end else EMPTY
        for span, start, end in zip(spans, starts, ends, strict=True)
    ]


def _each_by_itself(
    starts: npt.NDArray[np.floating], ends: npt.NDArray[np.floating]
) -> tuple[list[Span], list[float]] | None:
    """Return the best start and end of each leaf if they satisfy the rules, and so are the best spans.

    This is the case for nearly every parse of a trained model, and costs a tenth of the dynamic program.
    """
    firsts, lasts = starts.argmax(axis=1).tolist(), ends.argmax(axis=1).tolist()
    free = 0
    scores = []
    for leaf, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
        if not free <= first <= last:
            return None
        free = last + 1
        scores.append(float(starts[leaf, first]) + float(ends[leaf, last]))
    if not abs(sum(scores)) <= _LARGEST:  # a score that is NaN, or too large to compare with others
        return None
    return [Span(first, last + 1) for first, last in zip(firsts, lasts, strict=True)], scores


def _finite(scores: npt.NDArray[np.floating]) -> Floats:
    """Return scores that are all finite and too small to make an empty span look good."""
    return np.clip(np.nan_to_num(np.asarray(scores, np.float64), nan=-_LARGEST), -_LARGEST, _LARGEST)


def _running_best(values: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return the best value up to each index, and its first index.

    >>> [x.tolist() for x in _running_best(np.array([1.0, 0.0, 2.0]))]
    [[1.0, 1.0, 2.0], [0, 0, 2]]
    """
    best = np.maximum.accumulate(values)
    is_new = np.ones(len(values), bool)
    is_new[1:] = values[1:] > best[:-1]
    return best, np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))


def _trace(steps: list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]], n_tokens: int) -> list[Span]:
    spans = []
    limit = n_tokens
    for opened_at, ended in reversed(steps):
        last = int(ended[limit])
        if last < 0:
            spans.append(Span(limit, limit))
        else:
            spans.append(Span(int(opened_at[last]), last + 1))
            limit = spans[-1].start
    return spans[::-1]
