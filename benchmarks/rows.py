"""The utterances that the latency benchmark parses."""

from __future__ import annotations

from collections.abc import Callable

from corpora import topv2_folder

from treepiece.data.reader import read_rows
from treepiece.data.rows import Row


def eval_rows(n_rows: int, is_wanted: Callable[[Row], bool] | None = None) -> list[Row]:
    """Return rows of TOPv2 eval, evenly spread over those that are wanted; by default, over all."""
    rows = [row for row in read_rows(topv2_folder(), split="eval") if is_wanted is None or is_wanted(row)]
    return rows[:: max(1, len(rows) // n_rows)][:n_rows]


def texts_of(rows: list[Row]) -> list[str]:
    """Return the utterances as they were typed."""
    return [row.frame.utterance for row in rows if row.frame]
