"""Rows of a beam in runs of bounded size.

Every row of a run has the encoder's states of the whole text beside it, and what a graph makes of them: a beam of 200
on a text of 500 subwords would need gigabytes at once, for an answer of a few lines.
"""

from __future__ import annotations

MOST_STATES = 1 << 13
"""How many states a run may have in all its rows: a few hundred megabytes, and no slower than more at once."""


def chunks(n_rows: int, length: int) -> list[slice]:
    """Return which rows share a run, given the length of their text.

    A beam on a short text is one run. The size depends on the length alone, never on what else is parsed: in int8 the
    rows of a run share the scale that numbers are rounded on, so other runs could give another answer.

    >>> chunks(200, 40)
    [slice(0, 200, None)]
    >>> chunks(40, 500)
    [slice(0, 16, None), slice(16, 32, None), slice(32, 40, None)]
    """
    size = max(1, MOST_STATES // max(1, length))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
