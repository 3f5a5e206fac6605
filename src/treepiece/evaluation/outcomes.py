"""What became of one row: the frame that was wanted, the frame that was predicted, and whether that one is valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from treepiece.errors import FrameError, TreepieceError
from treepiece.trees.brackets import format_brackets
from treepiece.trees.frame import Frame, walk_leaves
from treepiece.trees.labels import INTENT_PREFIX, SLOT_PREFIX
from treepiece.trees.node import Event, Kind, Node, build_tree


@dataclass(frozen=True)
class Outcome:
    """A row of gold data and what a parser made of it in how many decoder passes.

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
        # Spans of different words cannot be compared: every such row would be a miss, whatever the parser did.
        if self.gold.words != self.predicted.words:
            raise FrameError(
                f"line {self.line}: the predicted frame has the words {self.predicted.words!r:.80}, the gold frame "
                f"{self.gold.words!r:.80}: both must have the gold frame's words"
            )

    @property
    def is_exact(self) -> bool:
        """Whether labels, order and spans are as wanted (exact match, EM)."""
        return self.gold == self.predicted

    @property
    def is_skeleton(self) -> bool:
        """Whether labels and order are as wanted, wherever the spans are (EM-S)."""
        return self.gold.skeleton == self.predicted.skeleton

    @property
    def is_valid(self) -> bool:
        """Whether the predicted frame is one that TOP text can say."""
        return is_valid_frame(self.predicted)

    @property
    def depth(self) -> int:
        """How many nodes the longest path of the gold skeleton has."""
        return self.gold.skeleton.depth


def is_valid_frame(frame: Frame) -> bool:
    """Return whether intents and slots alternate below an intent, and TOP text is read back as the same frame.

    The words are the user's, not the parser's, and some of them, such as `]`, cannot stand in TOP text. So each word is
    replaced by its number, which also tells equal words apart when spans are compared.

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
        child.label.startswith(wanted[node.label[:3]])  # pre-order: the node's own label was checked as a child
        for node in skeleton.nodes()
        for child in node.children
        if isinstance(child, Node)
    )


def full_tree(frame: Frame) -> Node:
    """Return the tree with all words of the utterance, as data files have it, where `frame.tree` has those of leaves.

    A frame does not say which node the other words are below: they are put as near to the root as they can be.

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
            # A node opens, or the root closes: what comes before the next leaf stands here, above as many as possible.
            end = len(frame.words) if span is None else span.start
        yield from ((Kind.WORD, word) for word in frame.words[start:end])
        done = end
        n_open += 1 if kind is Kind.OPEN else -1
        yield kind, label
