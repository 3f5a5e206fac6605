"""Frames: a parse in decoupled form (Aghajanyan et al., 2020; Section 2.1 of the paper).

A frame has the words of the utterance, a *skeleton* (the tree of intents and slots), and for each *utterance leaf* (a
slot without children) the span of words it covers. Words outside of the leaves belong to no node. The skeleton alone
determines how many leaves there are and in which order they occur.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from treepiece.errors import FrameError
from treepiece.trees.align import Span, align_words, covered, covering, cut_words, in_order
from treepiece.trees.brackets import format_brackets, scan_brackets
from treepiece.trees.flat_json import tree_from_rows, tree_to_rows
from treepiece.trees.node import Event, Kind, Node, build_tree, is_slot


class Leaf(NamedTuple):
    """An utterance leaf: its label, its words, its characters, and the text as the user typed it."""

    label: str
    words: Span
    chars: Span
    text: str


@dataclass(frozen=True)
class Frame:
    """The meaning of an utterance: a skeleton whose utterance leaves point at spans of words.

    Two frames are equal if their words, skeletons and spans are (exact match, EM). The whitespace between words does
    not matter.

    >>> frame = Frame.from_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME to night ] ? ]", "rain tonight?")
    >>> frame.skeleton, frame.spans, frame.leaves[0].text
    (Node('[IN:GET_WEATHER [SL:DATE_TIME ] ]'), (Span(start=1, end=3),), 'tonight')
    >>> frame.to_brackets()
    '[IN:GET_WEATHER [SL:DATE_TIME to night ] ]'
    """

    words: tuple[str, ...]
    skeleton: Node
    spans: tuple[Span, ...]
    utterance: str = field(compare=False)
    n_mixed: int = field(compare=False, default=0)
    """The number of slots with words next to a nested node; decoupled form drops such words."""

    def __post_init__(self) -> None:
        if "" in self.words:
            raise FrameError(f"word {self.words.index('')} of a frame is empty")
        if not self.skeleton.is_skeleton:
            raise FrameError("the skeleton of a frame contains words: build the frame with Frame.from_tree")
        n_leaves = len(leaf_labels(self.skeleton))
        if len(self.spans) != n_leaves:
            raise FrameError(f"the skeleton has {n_leaves} utterance leaves but there are {len(self.spans)} spans")
        end = 0
        for span in self.spans:
            if not end <= span.start <= span.end <= len(self.words):
                raise FrameError(
                    f"span {tuple(span)} is out of order or out of range: spans must go from left to right, "
                    f"must not overlap, and must end by word {len(self.words)}"
                )
            end = span.end

    @classmethod
    def from_brackets(cls, text: str, utterance: str | None = None) -> Frame:
        """Return the frame of TOP text; `utterance` is what the user typed, by default the words of the parse."""
        return cls._from_events(scan_brackets(text), utterance)

    @classmethod
    def from_tree(cls, tree: Node, utterance: str | None = None) -> Frame:
        """Return the frame of a tree with words."""
        return cls._from_events(tree.events(), utterance)

    @classmethod
    def from_chars(cls, utterance: str, skeleton: Node, chars: Sequence[Span], cuts: Iterable[int] = ()) -> Frame:
        """Return the frame of an utterance whose leaves cover the given characters.

        The words are those between whitespace, split where a leaf begins or ends and at the positions `cuts`. Where
        two leaves overlap, the first keeps what they share.

        >>> Frame.from_chars("at 8am", Node("IN:A", [Node("SL:B")]), [Span(3, 4)]).to_brackets()
        '[IN:A [SL:B 8 ] ]'
        """
        chars = list(in_order(chars))
        words = cut_words(utterance, [*cuts, *(place for span in chars for place in span)])
        spans = tuple(in_order(covering(words, span) for span in chars))
        return cls(tuple(utterance[start:end] for start, end in words), skeleton, spans, utterance)

    @classmethod
    def _from_events(cls, events: Iterable[Event], utterance: str | None) -> Frame:
        words: list[str] = []
        outline: list[str | None] = []
        spans: list[Span] = []
        n_mixed = 0
        path: list[list[int]] = []  # of each open node: first word, number of child nodes, number of own words
        for kind, text in events:
            if kind is Kind.WORD:
                words.append(text)
                path[-1][2] += 1
            elif kind is Kind.OPEN:
                if path:
                    path[-1][1] += 1
                path.append([len(words), 0, 0])
                outline.append(text)
            else:
                start, n_children, n_words = path.pop()
                if is_slot(text):
                    if not n_children:
                        spans.append(Span(start, len(words)))
                    n_mixed += bool(n_children and n_words)
                outline.append(None)
        # Leaves close in the order in which they open, so the spans are in pre-order already.
        typed = " ".join(words) if utterance is None else utterance
        frame = cls(tuple(words), _shared_skeleton(tuple(outline)), tuple(spans), typed, n_mixed)
        frame._check_utterance()
        return frame

    @cached_property
    def offsets(self) -> tuple[Span, ...]:
        """The characters of `utterance` that each word covers."""
        return align_words(self.utterance, self.words)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The utterance leaves from left to right."""
        labels = leaf_labels(self.skeleton)
        return tuple(self._leaf(label, span) for label, span in zip(labels, self.spans, strict=True))

    def _leaf(self, label: str, span: Span) -> Leaf:
        chars = covered(self.offsets, span, len(self.utterance))
        return Leaf(label, span, chars, self.utterance[chars.start : chars.end])

    @cached_property
    def tree(self) -> Node:
        """The decoupled tree: the skeleton with the words of its leaves."""
        return build_tree(_with_words(self.skeleton, self.words, iter(self.spans)))

    def to_brackets(self, *, all_words: bool = False) -> str:
        """Return the decoupled tree as TOP text, on request with the words that belong to no leaf.

        >>> frame = Frame.from_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]")
        >>> frame.to_brackets(), frame.to_brackets(all_words=True)
        ('[IN:GET_WEATHER [SL:DATE_TIME today ] ]', '[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]')
        """
        return format_brackets(build_tree(_with_all_words(self)) if all_words else self.tree)

    def to_json(self) -> dict[str, Any]:
        """Return the frame as a value that `json.dumps` accepts."""
        return {
            "utterance": self.utterance,
            "words": list(self.words),
            "skeleton": tree_to_rows(self.skeleton),
            "spans": [list(span) for span in self.spans],
        }

    @classmethod
    def from_json(cls, value: object) -> Frame:
        """Return the frame of a value that `to_json` returned."""
        keys = ("utterance", "words", "skeleton", "spans")
        if not isinstance(value, Mapping) or set(value) != set(keys):
            raise FrameError(f"a frame in JSON must be an object with the keys {', '.join(keys)}, got {value!r:.80}")
        words, spans, utterance = value["words"], value["spans"], value["utterance"]
        if not isinstance(utterance, str) or not _is_list_of_words(words):
            raise FrameError(
                "a frame in JSON must have 'utterance' as a string and 'words' as a list of non-empty strings"
            )
        if not isinstance(spans, list | tuple) or not all(_is_pair(span) for span in spans):
            raise FrameError("a frame in JSON must have 'spans' as a list of [start, end] pairs of integers")
        frame = cls(tuple(words), tree_from_rows(value["skeleton"]), tuple(Span(*span) for span in spans), utterance)
        frame._check_utterance()
        return frame

    def _check_utterance(self) -> None:
        """Raise early, not when a leaf is quoted, if utterance and words differ by more than whitespace."""
        if "".join(self.utterance.split()) != "".join(self.words):
            _ = self.offsets

    def _repr_svg_(self) -> str:
        return self.tree._repr_svg_()


@lru_cache(maxsize=1 << 16)
def leaf_labels(skeleton: Node) -> tuple[str, ...]:
    """Return the labels of the utterance leaves of a skeleton, from left to right.

    >>> leaf_labels(Node("IN:A", [Node("SL:B", [Node("IN:C")]), Node("SL:D")]))
    ('SL:D',)
    """
    return tuple(node.label for node in skeleton.nodes() if not node.children and is_slot(node.label))


def walk_leaves(skeleton: Node) -> Iterator[tuple[Kind, str, bool]]:
    """Yield the events of a skeleton, each with whether it closes an utterance leaf.

    >>> [is_leaf for _, _, is_leaf in walk_leaves(Node("IN:A", [Node("SL:B")]))]
    [False, False, True, False]
    """
    opened_last = False
    for kind, label in skeleton.events():
        yield kind, label, kind is Kind.CLOSE and opened_last and is_slot(label)
        opened_last = kind is Kind.OPEN


def _with_words(skeleton: Node, words: Sequence[str], spans: Iterator[Span]) -> Iterator[Event]:
    for kind, label, is_leaf in walk_leaves(skeleton):
        if is_leaf:
            span = next(spans)
            yield from ((Kind.WORD, word) for word in words[span.start : span.end])
        yield kind, label


def _with_all_words(frame: Frame) -> Iterator[Event]:
    """Yield the events of a tree with every word: those before a leaf right before it, those at the end in the root."""
    spans = iter(frame.spans)
    words = [(Kind.WORD, word) for word in frame.words]
    events = list(frame.skeleton.events())
    place = 0
    if len(events) == 2 and is_slot(frame.skeleton.label) and frame.spans[0] != (0, len(words)):
        raise FrameError("a tree that is a single slot has no place for words outside of it")
    for (kind, label), (following, _) in pairwise(events):
        if kind is Kind.OPEN and following is Kind.CLOSE and is_slot(label):
            span = next(spans)
            yield from words[place : span.start]
            yield kind, label
            yield from words[span.start : span.end]
            place = span.end
        else:
            yield kind, label
    yield from words[place:]
    yield events[-1]


@lru_cache(maxsize=1 << 16)
def _shared_skeleton(outline: tuple[str | None, ...]) -> Node:
    """Return the skeleton of an outline: a label where a node opens, None where one closes.

    The rows of a data set share a few thousand skeletons, which share subtrees. Building each of them once saves time,
    and comparing two of them is comparing identities.
    """
    events = ((Kind.CLOSE, "") if label is None else (Kind.OPEN, label) for label in outline)
    return build_tree(events, _shared_node)


_shared_node = lru_cache(maxsize=1 << 16)(Node)


def _is_list_of_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) and word for word in value)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(number) is int for number in value)
