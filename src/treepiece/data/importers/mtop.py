"""MTOP: requests in six languages with their trees in decoupled form (Li et al., 2021).

A line has eight columns: id, intent, slots, utterance, domain, locale, decoupled tree, and tokens in JSON. The tree has
only the words of its leaves. Where they are in the utterance follows from their order, and from the third column, which
has the characters of each slot of the top intent: `34:47:SL:DATE_TIME,18:30:SL:TODO`.
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

_SLOT = re.compile(r"(\d+):(\d+):(\S+)")


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
    frame = decoupled_frame(utterance, parse_brackets(parse), _read_tokens(tokens), _read_slots(slots))
    return Row(frame.skeleton, frame, domain or None, number)


def _read_tokens(text: str) -> list[str]:
    match json_object(text).get("tokens"):
        case [*tokens] if all(isinstance(token, str) and token for token in tokens):
            return tokens
    raise DataError(f"tokens: expected an object with a list of words under 'tokens', found {text!r:.60}")


def _read_slots(text: str) -> list[tuple[Span, str]]:
    slots = []
    for part in filter(None, text.split(",")):
        found = _SLOT.fullmatch(part.strip())
        if not found:
            raise DataError(f"slots: expected START:END:LABEL, separated by commas, found {part!r:.60}")
        slots.append((Span(int(found[1]), int(found[2])), found[3]))
    return sorted(slots, key=itemgetter(0))


def decoupled_frame(utterance: str, tree: Node, tokens: Sequence[str], slots: Sequence[tuple[Span, str]]) -> Frame:
    """Return the frame of a tree that has only the words of its leaves.

    `slots` are the characters and labels of the slots below the root, as far as they are known. A leaf whose words
    occur more than once where it may be is an error.

    >>> tree = parse_brackets("[IN:SEND_MESSAGE [SL:RECIPIENT mom ] ]")
    >>> decoupled_frame("text mom", tree, ["text", "mom"], []).spans
    (Span(start=1, end=2),)
    """
    offsets = align_words(utterance, tokens)
    skeleton, leaves, tops = _leaves(tree)
    within = [Span(0, len(tokens))] * len(leaves)
    wanted = [child.label for child in tree.children if isinstance(child, Node) and is_slot(child.label)]
    if [label for _, label in slots] == wanted:
        ranges = [covering(offsets, chars) for chars, _ in slots]
        within = [within[0] if top is None else ranges[top] for top in tops]
    spans = _place(leaves, tokens, within, leaf_labels(skeleton))
    return Frame(tuple(tokens), skeleton, tuple(spans), utterance)


def _leaves(tree: Node) -> tuple[Node, list[tuple[str, ...]], list[int | None]]:
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


def _place(
    leaves: Sequence[tuple[str, ...]], tokens: Sequence[str], within: Sequence[Span], labels: Sequence[str]
) -> list[Span]:
    """Return the only way to place the leaves in the tokens one after the other, each within its range."""
    first: list[Span] = []
    end = 0
    for words, (low, high), label in zip(leaves, within, labels, strict=True):
        found = _find(words, tokens, range(max(low, end), high - len(words) + 1)) if words else end
        if found is None:
            text = " ".join(words)
            raise DataError(
                f"decoupled tree: the words {text!r} of {label} are not in the utterance where they should be, in one "
                "piece and after those of the leaves before: a frame cannot express this"
            )
        end = found + len(words)
        first.append(Span(found, end))
    start = len(tokens)
    for words, (low, high), label, span in reversed(list(zip(leaves, within, labels, first, strict=True))):
        last = _find(words, tokens, range(min(high, start) - len(words), low - 1, -1)) if words else None
        if last is not None and last != span.start:
            text = " ".join(words)
            raise DataError(f"decoupled tree: the words {text!r} of {label} occur more than once in the utterance")
        start = span.start
    return first


def _find(words: Sequence[str], tokens: Sequence[str], starts: Iterable[int]) -> int | None:
    return next((start for start in starts if tuple(tokens[start : start + len(words)]) == tuple(words)), None)
