"""What a parser says of a text, as the columns that it adds to a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treepiece.errors import TextError, TreepieceError
from treepiece.jobs.columns import ANSWER
from treepiece.runtime.parser import Parser
from treepiece.runtime.result import Result

Answer = dict[str, Any]


def try_texts(
    parser: Parser, texts: Sequence[str | TreepieceError], *, nbest: int, min_confidence: float
) -> list[Result | TreepieceError]:
    """Return the result of each text; what was no text before stays the error that it is."""
    readable = [text for text in texts if isinstance(text, str)]
    results = iter(parser.try_batch(readable, nbest=nbest, min_confidence=min_confidence))
    return [next(results) if isinstance(text, str) else text for text in texts]


def check_tree(result: Result) -> TextError | None:
    """Return an error if a text was understood, but its words cannot be written in a tree."""
    if not result.understood or result.tree is not None:
        return None
    return TextError("TOP text cannot hold these words, because of a bracket between blanks: --json prints the leaves")


def answer(result: Result | TreepieceError, *, nbest: int) -> Answer:
    """Return the columns of an answer. There are no times among them: the same row has the same answer every time."""
    if isinstance(result, TreepieceError):
        return {**dict.fromkeys(ANSWER), "understood": False, "error": str(result)}
    error = check_tree(result)
    found: Answer = {
        "tree": result.tree,
        "confidence": result.confidence,
        "understood": result.understood,
        "error": str(error) if error else None,
    }
    if nbest > 1:
        found["nbest"] = [candidate.to_json() for candidate in result.candidates]
    return found


def add_answer(row: Mapping[str, Any], found: Answer) -> dict[str, Any]:
    """Return a row with its answer at the end; it replaces columns of the same names."""
    return {name: value for name, value in row.items() if name not in found} | found
