"""The work of the threads behind the queue: they turn texts into answers and trees into units.

The threads encode the JSON too, so that the event loop only has to send it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from treepiece.errors import TextError, TreepieceError
from treepiece.runtime.parser import Parser
from treepiece.runtime.result import Result
from treepiece.trees.brackets import format_brackets, scan_brackets
from treepiece.trees.node import Kind, build_tree


class TextOutcome(StrEnum):
    """The outcome for a text or a tree."""

    UNDERSTOOD = "understood"
    NOT_UNDERSTOOD = "not_understood"
    UNREADABLE = "unreadable"
    UNITS = "units"


@dataclass(frozen=True)
class Answer:
    """An encoded answer, or the error."""

    body: bytes
    outcome: TextOutcome
    error: TreepieceError | None = None


@dataclass(frozen=True)
class Task:
    """The key of items that share a batch: texts with the same `nbest`, or trees (`nbest` is 0)."""

    nbest: int

    def weight(self, text: str) -> int:
        """Return the number of candidates that a text counts as: time and memory grow with `nbest` and the length.

        >>> Task(3).weight("call mom"), Task(3).weight("call mom " * 50)
        (3, 15)
        """
        return self.nbest * max(1, -(-len(text) // CANDIDATE_CHARACTERS)) if self.nbest else 1


TREES = Task(0)
Item = tuple[str, float]
"""A text with its `min_confidence`, or a tree."""
CANDIDATE_CHARACTERS = 100
"""Each candidate counts once per this many characters, so long texts weigh more."""


@dataclass(frozen=True)
class Answerer:
    """Answers items that have the same task. Threads may share it; `unanswered` is the weight of all open items."""

    parser: Parser
    unanswered: Callable[[], int]

    def __call__(self, task: Task, items: Sequence[Item]) -> list[Answer]:
        """Return the answer of each item, which does not depend on the other items."""
        if task == TREES:
            return [self._cut(tree) for tree, _ in items]
        results = self._parse(task, [text for text, _ in items])
        return [_write(text, result, least) for (text, least), result in zip(items, results, strict=True)]

    def _parse(self, task: Task, texts: Sequence[str]) -> Sequence[Result | TextError]:
        if len(texts) > 1 or self.unanswered() > task.weight(texts[0]):
            return self.parser.try_batch(texts, nbest=task.nbest)
        try:
            # All threads on one text give its answer sooner, but separate threads have more throughput.
            return [self.parser(texts[0], nbest=task.nbest)]
        except TextError as error:
            return [error]

    def _cut(self, tree: str) -> Answer:
        tokenizer = self.parser.definition.tokenizer
        assert tokenizer is not None  # requests for units are refused if the model has none
        try:
            # Not `Frame.from_brackets`, which caches every skeleton: any client could fill the memory with them.
            skeleton = build_tree(event for event in scan_brackets(tree) if event[0] is not Kind.WORD)
            unit_ids = tokenizer.encode(skeleton)
        except TreepieceError as error:
            return Answer(b"", TextOutcome.UNREADABLE, error)
        units = [tokenizer.units[unit_id] for unit_id in unit_ids]
        value = {
            "skeleton": format_brackets(skeleton),
            "units": [{"id": unit.id, "text": str(unit), "probability": unit.probability} for unit in units],
            "unit_places": tokenizer.places(unit_ids),
        }
        return Answer(_dump(value), TextOutcome.UNITS)


def _write(text: str, result: Result | TextError, least: float) -> Answer:
    if isinstance(result, TextError):
        return Answer(_dump({"text": text, "error": str(result)}), TextOutcome.UNREADABLE, result)
    # Texts share a batch even if they differ in `min_confidence`.
    checked = result.with_min_confidence(least)
    outcome = TextOutcome.UNDERSTOOD if checked.understood else TextOutcome.NOT_UNDERSTOOD
    return Answer(_dump(checked.to_dict()), outcome)


def _dump(value: object) -> bytes:
    # With escapes, most of the world's scripts would take three to six times as many bytes.
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    # UTF-8 cannot express a lone surrogate. Python escapes it as JSON does, with \u and four digits.
    return text.encode(errors="backslashreplace")
