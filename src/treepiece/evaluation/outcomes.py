"""Outcomes: the gold frame and the predicted frame of one row, compared word by word.

`compare` aligns a prediction with the words of the gold frame, `Outcome` tells whether it is an exact match, and
`write_errors` saves the mismatches as JSON Lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from treepiece.bundle import replace_files
from treepiece.errors import DataError, FrameError, TreeParseError, TreepieceError
from treepiece.trees.align import Span, covered, covering, in_order
from treepiece.trees.brackets import format_brackets
from treepiece.trees.flat_json import NodeRow, tree_to_rows
from treepiece.trees.frame import Frame, walk_leaves
from treepiece.trees.node import INTENT_PREFIX, SLOT_PREFIX, Event, Kind, Node, build_tree


@dataclass(frozen=True)
class Outcome:
    """A gold frame, the predicted frame over the same words, and the number of decoder passes.

    >>> gold = Frame.from_brackets("[IN:A x [SL:B y ] z ]")
    >>> outcome = Outcome(gold, Frame.from_brackets("[IN:A x [SL:B y z ] ]"), domain=None, passes=1)
    >>> outcome.is_exact, outcome.is_skeleton, outcome.is_valid, outcome.depth
    (False, True, True, 2)
    """

    gold: Frame
    predicted: Frame
    domain: str | None
    passes: int
    line: int = 0

    def __post_init__(self) -> None:
        # Spans over different words cannot be compared: such a row would always be a mismatch.
        if self.gold.words != self.predicted.words:
            raise FrameError(
                f"line {self.line}: the predicted frame has the words {self.predicted.words!r:.80}, the gold frame "
                f"{self.gold.words!r:.80}: both must have the same words"
            )

    @property
    def is_exact(self) -> bool:
        """Whether skeleton and spans are correct (exact match, EM)."""
        return self.gold == self.predicted

    @property
    def is_skeleton(self) -> bool:
        """Whether the skeleton is correct, whatever the spans (EM-S)."""
        return self.gold.skeleton == self.predicted.skeleton

    @property
    def is_valid(self) -> bool:
        """Whether the predicted frame is a valid TOP frame."""
        return is_valid_frame(self.predicted)

    @property
    def depth(self) -> int:
        """The depth of the gold skeleton."""
        return self.gold.skeleton.depth


def is_valid_frame(frame: Frame) -> bool:
    """Return whether the root is an intent, intents and slots alternate, and TOP text round-trips to the same frame.

    TOP text cannot express some words, such as `]`, but those come from the user and not from the parser. So each word
    is replaced by its number, which also distinguishes equal words when spans are compared.

    >>> is_valid_frame(Frame.from_brackets("[IN:A x [SL:B y ] ]"))
    True
    >>> is_valid_frame(Frame.from_brackets("[IN:A x [IN:B y ] ]"))
    False
    """
    if not _alternates(frame.skeleton):
        return False
    numbered = replace(frame, words=tuple(str(number) for number in range(len(frame.words))))
    try:
        return Frame.from_brackets(format_brackets(full_tree(numbered))) == numbered
    except TreepieceError:
        return False


def _alternates(skeleton: Node) -> bool:
    wanted = {INTENT_PREFIX: SLOT_PREFIX, SLOT_PREFIX: INTENT_PREFIX}
    if not skeleton.label.startswith(INTENT_PREFIX):
        return False
    return all(
        child.label.startswith(wanted[node.label[:3]])  # in pre-order the label of a node was checked as a child before
        for node in skeleton.nodes()
        for child in node.children
        if isinstance(child, Node)
    )


def full_tree(frame: Frame) -> Node:
    """Return the tree with all words of the utterance, as in data files; `frame.tree` has the words of leaves only.

    A frame does not tell which node the other words belong to: they are attached as close to the root as possible.

    >>> full_tree(Frame.from_brackets("[IN:A x [SL:B [IN:C [SL:D y ] z ] ] ]"))
    Node('[IN:A x [SL:B [IN:C [SL:D y ] ] ] z ]')
    """
    return build_tree(_with_all_words(frame))


def _with_all_words(frame: Frame) -> Iterator[Event]:
    spans = iter(frame.spans)
    span = next(spans, None)
    done = n_open = 0
    for kind, label, is_leaf in walk_leaves(frame.skeleton):
        start = end = done
        if is_leaf and span is not None:
            (start, end), span = span, next(spans, None)
        elif n_open and (kind is Kind.OPEN or n_open == 1):
            # A node opens or the root closes: the words before the next leaf go here, as close to the root as possible.
            end = len(frame.words) if span is None else span.start
        yield from ((Kind.WORD, word) for word in frame.words[start:end])
        done = end
        n_open += 1 if kind is Kind.OPEN else -1
        yield kind, label


def compare(
    gold: Frame, skeleton: Node, chars: Sequence[Span], *, domain: str | None, passes: int, line: int = 0
) -> Outcome:
    """Return the outcome of a predicted skeleton whose leaves cover the given characters of the gold utterance."""
    chars = list(in_order(chars))
    spans = tuple(covering(gold.offsets, span) for span in chars)
    if [covered(gold.offsets, span, len(gold.utterance)) for span in spans] == chars:
        predicted = Frame(gold.words, skeleton, spans, gold.utterance)
    else:  # A leaf begins or ends inside a gold word. It is wrong, so split words rather than widen the leaf.
        wanted = [leaf.chars for leaf in gold.leaves]
        cuts = [place for span in (*gold.offsets, *wanted, *chars) for place in span]
        predicted = Frame.from_chars(gold.utterance, skeleton, chars, cuts)
        gold = Frame.from_chars(gold.utterance, gold.skeleton, wanted, cuts)
    return Outcome(gold, predicted, domain, passes, line)


def write_errors(path: Path, outcomes: Iterable[Outcome]) -> int:
    """Write the mismatches and return their number; an existing file stays intact until the new one is complete."""
    mismatches = [_mismatch(outcome) for outcome in outcomes if not outcome.is_exact]
    # json escapes non-ASCII text, so a lone surrogate survives.
    data = "".join(json.dumps(mismatch) + "\n" for mismatch in mismatches).encode()
    try:
        replace_files(path.parent, {path.name: data})
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from error
    return len(mismatches)


def _mismatch(outcome: Outcome) -> dict[str, Any]:
    return {
        "line": outcome.line,
        "domain": outcome.domain,
        "utterance": outcome.gold.utterance,
        "wrong": "spans" if outcome.is_skeleton else "skeleton",
        "gold": _tree(outcome.gold),
        "predicted": _tree(outcome.predicted),
    }


def _tree(frame: Frame) -> str | list[NodeRow]:
    """Return the tree of a frame with all words, as TOP text if possible, else as flat JSON."""
    tree = full_tree(frame)
    try:
        return format_brackets(tree)
    except TreeParseError:
        return tree_to_rows(tree)
