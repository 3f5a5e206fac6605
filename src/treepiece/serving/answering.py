"""What the threads behind the queue do: texts into answers, trees into units.

Answers are made into JSON here, beside the event loop, which then has little more to do than to send them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from treepiece.errors import TextError, TreepieceError
from treepiece.runtime.parser import Parser
from treepiece.runtime.result import Result
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.brackets import format_brackets, scan_brackets
from treepiece.trees.node import Kind, build_tree


class Outcome(StrEnum):
    """What came of a text or a tree."""

    UNDERSTOOD = "understood"
    NOT_UNDERSTOOD = "not_understood"
    UNREADABLE = "unreadable"
    UNITS = "units"


@dataclass(frozen=True)
class Answer:
    """An answer as it is sent, and if there is none why."""

    body: bytes
    outcome: Outcome
    error: TreepieceError | None = None


@dataclass(frozen=True)
class Task:
    """What is computed together: texts of which equally many readings are wanted, or trees (`nbest` is 0)."""

    nbest: int

    def weight(self, text: str) -> int:
        """Return how many readings a text counts as: time and memory grow with the readings, and with the length.

        >>> Task(3).weight("call mom"), Task(3).weight("call mom " * 50)
        (3, 15)
        """
        return self.nbest * max(1, -(-len(text) // READING)) if self.nbest else 1


TREES = Task(0)
Item = tuple[str, float]
"""A text with the confidence that it must be understood with, or a tree."""
READING = 100
"""How many characters of a text a reading is counted for; a reading of a longer text counts as several."""


class Answerer:
    """Answers items that have the same task. Threads may share it; `unanswered` tells the weight of all there is."""

    def __init__(self, parser: Parser, unanswered: Callable[[], int]) -> None:
        self._parser = parser
        self._unanswered = unanswered

    def __call__(self, task: Task, items: Sequence[Item]) -> list[Answer]:
        """Return the answer of each item, the same whatever stands beside it."""
        if task == TREES:
            return [self._cut(tree) for tree, _ in items]
        results = self._parse(task, [text for text, _ in items])
        return [_write(text, result, least) for (text, least), result in zip(items, results, strict=True)]

    def _parse(self, task: Task, texts: Sequence[str]) -> Sequence[Result | TextError]:
        if len(texts) > 1 or self._unanswered() > task.weight(texts[0]):
            return self._parser.try_batch(texts, nbest=task.nbest)
        try:
            # With all threads for one text its answer is there sooner, but they do less together than apart.
            return [self._parser(texts[0], nbest=task.nbest)]
        except TextError as error:
            return [error]

    def _cut(self, tree: str) -> Answer:
        tokenizer = self._parser.definition.tokenizer
        assert tokenizer is not None  # requests for units are refused where there are none
        try:
            value = cut_tree(tree, tokenizer)
        except TreepieceError as error:
            return Answer(b"", Outcome.UNREADABLE, error)
        return Answer(_dump(value), Outcome.UNITS)


def cut_tree(tree: str, tokenizer: TreePieceTokenizer) -> dict[str, object]:
    """Return the units of a tree as a value that `json.dumps` can write."""
    # Not `Frame.from_brackets`, which keeps every skeleton for the next time: anybody could fill the memory with them.
    skeleton = build_tree(event for event in scan_brackets(tree) if event[0] is not Kind.WORD)
    unit_ids = tokenizer.encode(skeleton)
    units = [tokenizer.units[unit_id] for unit_id in unit_ids]
    return {
        "skeleton": format_brackets(skeleton),
        "units": [{"id": unit.id, "text": str(unit), "probability": unit.probability} for unit in units],
        "unit_places": tokenizer.places(unit_ids),
    }


def _write(text: str, result: Result | TextError, least: float) -> Answer:
    if isinstance(result, TextError):
        return Answer(_dump({"text": text, "error": str(result)}), Outcome.UNREADABLE, result)
    # Texts are parsed together whatever confidence each must have, and judged one by one.
    judged = replace(result, understood=result.confidence >= least)
    return Answer(_dump(judged.to_json()), Outcome.UNDERSTOOD if judged.understood else Outcome.NOT_UNDERSTOOD)


def _dump(value: object) -> bytes:
    try:
        # Escapes would make three to six times as many bytes of what most of the world writes.
        return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can hold and UTF-8 cannot
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
