"""The misses of a parser on disk, a JSON object a line, for eyes and for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from treepiece.errors import DataError, TreeParseError
from treepiece.evaluation.outcomes import Outcome, full_tree
from treepiece.files import replace_files
from treepiece.trees.brackets import format_brackets
from treepiece.trees.frame import Frame
from treepiece.trees.rows import NodeRow, tree_to_rows


def write_errors(path: Path, outcomes: Iterable[Outcome]) -> int:
    """Return how many outcomes are misses, after writing them; what was there before stays whole until they are."""
    misses = [_miss(outcome) for outcome in outcomes if not outcome.is_exact]
    # json writes non-ASCII text as escapes, so a lone surrogate survives.
    data = "".join(json.dumps(miss) + "\n" for miss in misses).encode()
    try:
        replace_files(path.parent, {path.name: data})
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from error
    return len(misses)


def _miss(outcome: Outcome) -> dict[str, Any]:
    return {
        "line": outcome.line,
        "domain": outcome.domain,
        "utterance": outcome.gold.utterance,
        "wrong": "spans" if outcome.is_skeleton else "skeleton",
        "gold": _tree(outcome.gold),
        "predicted": _tree(outcome.predicted),
    }


def _tree(frame: Frame) -> str | list[NodeRow]:
    """Return a frame's tree with all words, so that a span is seen in its place: as TOP text if that can say it."""
    tree = full_tree(frame)
    try:
        return format_brackets(tree)
    except TreeParseError:
        return tree_to_rows(tree)
