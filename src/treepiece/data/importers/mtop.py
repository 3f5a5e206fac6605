"""MTOP: requests in six languages with their trees in decoupled form (Li et al., 2021).

A line has eight columns: id, intent, slots, utterance, domain, locale, decoupled tree, and tokens in JSON. The tree has
only the words of its leaves. Where they are in the utterance follows from their order. If they occur more than once,
the third column decides, which has the place of each slot of the top intent: `34:47:SL:DATE_TIME,18:30:SL:TODO`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter

from treepiece.data.importers.naming import LabelNames, attempt
from treepiece.data.rows import ReadReport, Row, decode_line, json_object
from treepiece.errors import DataError
from treepiece.trees.align import Span, align_words, covering
from treepiece.trees.brackets import parse_brackets
from treepiece.trees.frame import Frame, leaf_labels
from treepiece.trees.node import Node, is_slot

COLUMNS = ("id", "intent", "slots", "utterance", "domain", "locale", "decoupled tree", "tokens")

Words = tuple[str, ...]

_SLOT = re.compile(r"(\d{1,9}):(\d{1,9}):(\S+)")


def read_mtop(file: Iterable[bytes], name: str, report: ReadReport, names: LabelNames) -> Iterator[Row]:
    """Yield the rows of a file of MTOP; its labels stay as they are, so `names` is not used."""
    for number, raw in enumerate(file, start=1):
        is_blank, is_header = not raw.strip(), number == 1 and raw.lstrip(b"\xef\xbb\xbf").startswith(b"id\t")
        if not is_blank and not is_header:
            yield from attempt(partial(_read_line, raw, number), name, number, report)


def _read_line(raw: bytes, number: int) -> Row:
    columns = decode_line(raw, is_first=number == 1).split("\t")
    if len(columns) != len(COLUMNS):
        raise DataError(f"expected eight columns, {', '.join(COLUMNS)}, found {len(columns)}")
    _, _, slots, utterance, domain, _, parse, tokens = columns
    frame = decoupled_frame(utterance, parse_brackets(parse), _read_tokens(tokens), slots)
    return Row(frame.skeleton, frame, domain or None, number)


def _read_tokens(text: str) -> list[str]:
    match json_object(text).get("tokens"):
        case [*tokens] if all(isinstance(token, str) and token for token in tokens):
            return tokens
    raise DataError(f"tokens: expected an object with a list of words under 'tokens', found {text!r:.60}")


def decoupled_frame(utterance: str, tree: Node, tokens: Sequence[str], slots: str) -> Frame:
    """Return the frame of a tree that has only the words of its leaves.

    `slots` decide where the words are that occur more than once; if they do not, it is an error.

    >>> tree = parse_brackets("[IN:SEND_MESSAGE [SL:RECIPIENT mom ] ]")
    >>> decoupled_frame("hi mom hi mom", tree, "hi mom hi mom".split(), "3:6:SL:RECIPIENT").spans
    (Span(start=1, end=2),)
    """
    offsets = align_words(utterance, tokens)
    skeleton, leaves, tops = _leaves(tree)
    anywhere = [Span(0, len(tokens))] * len(leaves)
    found = _placements(leaves, tokens, anywhere)
    if not found:
        place = len(_leftmost(leaves, tokens, anywhere))
        raise DataError(
            f"decoupled tree: the words {' '.join(leaves[place])!r} of {leaf_labels(skeleton)[place]} are not in the "
            "utterance in one piece, after those of the leaves before: a frame cannot express this"
        )
    if len(found) > 1:
        place = next(place for place, spans in enumerate(zip(*found, strict=True)) if len(set(spans)) > 1)
        wanted = [child.label for child in tree.children if isinstance(child, Node) and is_slot(child.label)]
        found = set()
        for ranges in _slot_ranges(slots, utterance, wanted):
            inside = [covering(offsets, chars) for chars in ranges]
            within = [anywhere[0] if top is None else inside[top] for top in tops]
            found |= _placements(leaves, tokens, within)
    if len(found) != 1:
        raise DataError(
            f"decoupled tree: the words {' '.join(leaves[place])!r} of {leaf_labels(skeleton)[place]} occur more than "
            "once in the utterance, and the slots do not decide which are meant"
        )
    return Frame(tuple(tokens), skeleton, found.pop(), utterance)


def _slot_ranges(text: str, utterance: str, labels: Sequence[str]) -> Iterator[list[Span]]:
    """Yield the characters of the slots below the root: read as characters, and as bytes, as other tools count them.

    If the labels are not those of the tree, there are none.
    """
    slots = []
    for part in filter(None, text.split(",")):
        match = _SLOT.fullmatch(part.strip())
        if not match:
            raise DataError(f"slots: expected START:END:LABEL, separated by commas, found {part!r:.60}")
        slots.append((Span(int(match[1]), int(match[2])), match[3]))
    slots.sort(key=itemgetter(0))
    if [label for _, label in slots] != labels:
        return
    yield [span for span, _ in slots]
    if not utterance.isascii():
        encoded = utterance.encode(errors="replace")
        yield [Span(*(len(encoded[:place].decode(errors="ignore")) for place in span)) for span, _ in slots]


def _leaves(tree: Node) -> tuple[Node, list[Words], list[int | None]]:
    """Return the skeleton, the words of each leaf, and the slot below the root that it belongs to."""
    plain = Frame.from_tree(tree)
    leaves = [plain.words[span.start : span.end] for span in plain.spans]
    outside = len(plain.words) - sum(map(len, leaves))
    if outside:
        raise DataError(f"decoupled tree: {outside} of its words are outside of the leaves: it is not decoupled")
    tops: list[int | None] = []
    n_slots = 0
    for child in plain.skeleton.children:
        assert isinstance(child, Node)  # a skeleton has no words
        tops += [n_slots if is_slot(child.label) else None] * len(leaf_labels(child))
        n_slots += is_slot(child.label)
    return plain.skeleton, leaves, tops


def _placements(leaves: Sequence[Words], tokens: Sequence[str], within: Sequence[Span]) -> set[tuple[Span, ...]]:
    """Return the first and the last place of the leaves: one if there is no other, none if there is no place.

    An empty leaf is right after the leaf before it.
    """
    first = _leftmost(leaves, tokens, within)
    if len(first) < len(leaves):
        return set()
    last = _rightmost(leaves, tokens, within)
    return {tuple(first), tuple(b if words else a for a, b, words in zip(first, last, leaves, strict=True))}


def _leftmost(leaves: Sequence[Words], tokens: Sequence[str], within: Sequence[Span]) -> list[Span]:
    """Return the first place of each leaf within its range, one leaf after the other; fewer if one has no place."""
    spans: list[Span] = []
    end = 0
    for words, (low, high) in zip(leaves, within, strict=True):
        starts = range(max(low, end), high - len(words) + 1) if words else [end]
        start = next((start for start in starts if tuple(tokens[start : start + len(words)]) == words), None)
        if start is None:
            break
        end = start + len(words)
        spans.append(Span(start, end))
    return spans


def _rightmost(leaves: Sequence[Words], tokens: Sequence[str], within: Sequence[Span]) -> list[Span]:
    """Return the last place of each leaf; it has one if it has a first one."""
    n = len(tokens)
    mirrored = [Span(n - end, n - start) for start, end in reversed(within)]
    spans = _leftmost([words[::-1] for words in reversed(leaves)], tokens[::-1], mirrored)
    return [Span(n - end, n - start) for start, end in reversed(spans)]
