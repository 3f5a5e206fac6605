"""BIO files, such as those of Snips and ATIS: a tag for each token, and an intent for each utterance.

A tag is `O`, or `B-` and `I-` with the name of a slot. There are two layouts: a folder with the files `seq.in`,
`seq.out` and `label`, or one file with a token and its tag per line and a blank line between utterances. The intent
is then a line of its own before or after the tokens, or a third column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest

from treepiece.data.importers.naming import LabelNames, attempt
from treepiece.data.rows import BadRow, ReadReport, Row, decode_line
from treepiece.errors import DataError
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame
from treepiece.trees.labels import EntityName
from treepiece.trees.node import Node

FOLDER_FILES = ("seq.in", "seq.out", "label")
"""The files of the layout with a line per utterance: its tokens, their tags, and its intent."""

Line = tuple[int, str]


def read_bio_folder(
    files: Sequence[Iterable[bytes]], name: str, report: ReadReport, names: LabelNames
) -> Iterator[Row]:
    """Yield the rows of the three files in `FOLDER_FILES`."""
    for number, lines in enumerate(zip_longest(*files), start=1):
        if None in lines:
            ended = ", ".join(file for file, line in zip(FOLDER_FILES, lines, strict=True) if line is None)
            raise DataError(f"{name}: {ended} has {number - 1} lines, and the others have more: the lines must match")
        yield from attempt(partial(_folder_row, lines, names, number), name, number, report)


def _folder_row(lines: Sequence[bytes], names: LabelNames, number: int) -> Row:
    tokens, tags, intent = (decode_line(line, is_first=number == 1) for line in lines)
    return tagged_row(tokens.split(), tags.split(), intent, names, number)


def read_conll(file: Iterable[bytes], name: str, report: ReadReport, names: LabelNames) -> Iterator[Row]:
    """Yield the rows of a file with a token and its tag per line."""
    block: list[Line] = []
    is_readable = True
    for number, raw in enumerate(file, start=1):
        try:
            line = decode_line(raw, is_first=number == 1)
        except DataError as error:
            report.refuse(BadRow(name, number, str(error)))
            is_readable = False  # the rest of its utterance is left out with it
            continue
        if line.strip():
            block.append((number, line))
            continue
        if block and is_readable:
            yield from attempt(partial(_block_row, block, names), name, block[0][0], report)
        block, is_readable = [], True
    if block and is_readable:
        yield from attempt(partial(_block_row, block, names), name, block[0][0], report)


def _block_row(block: Sequence[Line], names: LabelNames) -> Row:
    columns = [(number, line.split()) for number, line in block]
    intents = set()
    for edge in (0, -1):
        if columns and len(columns[edge][1]) == 1:
            intents.add(columns.pop(edge)[1][0])
    for number, found in columns:
        if not 2 <= len(found) <= 3:
            raise DataError(
                f"line {number}: found {len(found)} column{'s' * (len(found) != 1)}: expected a token, its tag (O if "
                "it has no slot) and perhaps the intent"
            )
        intents.update(found[2:])
    if len(intents) != 1:
        there = f"the intents {', '.join(sorted(intents))}" if intents else "no intent"
        raise DataError(f"found {there}: write one, as a line before or after the tokens or as the third column")
    tokens, tags = [found[0] for _, found in columns], [found[1] for _, found in columns]
    return tagged_row(tokens, tags, intents.pop(), names, block[0][0])


def is_tag(text: str) -> bool:
    """Return whether a text is a BIO tag.

    >>> is_tag("O"), is_tag("B-city"), is_tag("city")
    (True, True, False)
    """
    return text == "O" or (text.startswith(("B-", "I-")) and len(text) > 2)


def tagged_row(tokens: Sequence[str], tags: Sequence[str], intent: str, names: LabelNames, line: int) -> Row:
    """Return the row of an utterance whose tokens have BIO tags.

    >>> row = tagged_row(["play", "some", "jazz"], ["O", "O", "B-genre"], "PlayMusic", LabelNames(), 1)
    >>> row.frame.to_brackets()
    '[IN:PLAYMUSIC [SL:GENRE jazz ] ]'
    """
    if not tokens:
        raise DataError("found an utterance without tokens: remove it")
    if len(tokens) != len(tags):
        raise DataError(f"found {len(tokens)} tokens and {len(tags)} tags: each token needs one tag")
    found: list[tuple[str, Span]] = []
    open_name = None
    for place, (token, tag) in enumerate(zip(tokens, tags, strict=True)):
        kind, mark, name = tag.partition("-")
        if kind == "B" and name:
            found.append((names.slot(EntityName(name)), Span(place, place + 1)))
        elif kind == "I" and name and name == open_name:
            label, span = found[-1]
            found[-1] = (label, Span(span.start, place + 1))
        elif kind == "I" and name:
            raise DataError(
                f"token {place + 1}, {token!r}: {tag} does not continue a slot: begin the slot with B-{name}"
            )
        elif tag != "O":
            raise DataError(f"token {place + 1}, {token!r}: expected the tag O, B-NAME or I-NAME, found {tag!r}")
        open_name = name if mark else None
    skeleton = Node(names.intent(intent), [Node(label) for label, _ in found])
    frame = Frame(tuple(tokens), skeleton, tuple(span for _, span in found), " ".join(tokens))
    return Row(skeleton, frame, line=line)
