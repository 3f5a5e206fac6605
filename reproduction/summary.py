"""Scores as they are kept: without the texts of rows, which are TOPv2's and stay out of what is published."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reproduction.store import Json
from treepiece.evaluation.outcomes import Outcome
from treepiece.evaluation.scores import score
from treepiece.trees.node import Node


def summarise(outcomes: Iterable[Outcome], seen: Collection[Node] | None = None) -> Json:
    """Return the scores of outcomes; `seen` as for `score`."""
    scores = score(outcomes, seen).to_json()
    del scores["confusions"]  # each has an utterance as its example
    return scores
