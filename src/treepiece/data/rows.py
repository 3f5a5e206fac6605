"""Rows of training and evaluation data, and the formats of their lines: columns separated by tabs, or JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from treepiece.errors import DataError, FrameError
from treepiece.trees.brackets import TOP_OPENINGS, parse_brackets
from treepiece.trees.flat_json import tree_from_rows
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node


@dataclass(frozen=True)
class Row:
    """A tree with its utterance, and the line it was read from; `frame` is None if a file has only trees."""

    skeleton: Node
    frame: Frame | None = None
    domain: str | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be read: its position and the reason."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


@dataclass
class ReadReport:
    """Counts rows as they are read. With `strict`, the first row that cannot be read raises.

    `on_bytes` is called with the number of bytes of each line, for progress bars. `left_out` counts what an importer
    leaves out on purpose, such as synonyms.
    """

    strict: bool = False
    on_bytes: Callable[[int], None] | None = None
    n_rows: int = 0
    bad_rows: list[BadRow] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def refuse(self, bad: BadRow) -> None:
        """Count a row that cannot be read, or raise."""
        if self.strict:
            raise DataError(str(bad))
        self.bad_rows.append(bad)


def format_row(row: Row) -> str:
    r"""Return a row as a line of a TSV file, utterance and parse; raise if it cannot be written so.

    >>> frame = Frame.from_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]")
    >>> format_row(Row(frame.skeleton, frame))
    'rain today\t[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]'
    """
    if row.frame is None:
        raise DataError("a tree without an utterance cannot be written as utterance and parse")
    line = f"{_BLANK.sub(' ', row.frame.utterance)}\t{row.frame.to_brackets(all_words=True)}"
    try:
        line.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"the character {line[error.start]!r} cannot be written as UTF-8: remove it") from None
    return line


ParseLine = Callable[[str], Row]
"""Reads a row from a line."""

_PARSE_COLUMN = ("parse", "semantic_parse", "seqlogical")  # names of the last column in headers
_BLANK = re.compile(r"[\t\r\n]")
_COLUMNS = {
    1: "one column, a tree",
    2: "two columns, utterance and parse",
    3: "three columns, utterance, tokenized utterance and parse",
}


def choose_format(first_line: str) -> tuple[ParseLine, bool]:
    """Return the function that reads the lines of a file, and whether the first line is a header.

    TOPv2 files have a header that starts with `domain`; TOP files have three columns; two columns are utterance and
    parse; a single column is a tree; a line that starts with `{` is JSON.
    """
    if first_line.lstrip().startswith("{") and "\t[" not in first_line:
        return _parse_json, False
    columns = first_line.split("\t")
    n_columns = len(columns)
    is_header = n_columns > 1 and columns[-1].strip().lower() in _PARSE_COLUMN
    if is_header and n_columns == 3 and columns[0] == "domain":
        return _parse_topv2, True
    if n_columns == 1 and not first_line.lstrip().startswith("["):
        raise DataError(f"expected {_COLUMNS[2]}, found one column: put a tab between utterance and parse")
    if n_columns not in _COLUMNS:
        raise DataError(f"expected {' or '.join(_COLUMNS.values())}, found {n_columns} columns")
    return {1: _parse_tree, 2: _parse_pair, 3: _parse_top}[n_columns], is_header


def decode_line(raw: bytes, *, is_first: bool = False) -> str:
    r"""Return a line without its end; the first of a file may begin with a byte order mark.

    >>> decode_line(b"one\r\n")
    'one'
    """
    try:
        text = raw.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start + 1} is not UTF-8, got {raw[:40]!r}: save the file as UTF-8") from None
    return text.removesuffix("\n").removesuffix("\r")


def json_object(line: str, decode: Callable[[str], Any] = json.loads) -> dict[str, Any]:
    """Return the JSON object of a line.

    >>> json_object('{"text": "hello"}')
    {'text': 'hello'}
    """
    try:
        value = decode(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error!s:.100}, got {line!r:.60}") from None
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, got {line!r:.60}")
    return value


def _split(line: str, n_columns: int, names: str) -> list[str]:
    columns = line.split("\t")
    if len(columns) != n_columns:
        raise DataError(f"expected {names}, found {len(columns)} column{'s' * (len(columns) != 1)}")
    return columns


def _parse_topv2(line: str) -> Row:
    domain, utterance, parse = _split(line, 3, "three columns, domain, utterance and parse")
    return _row(Frame.from_brackets(parse, utterance), domain)


def _parse_top(line: str) -> Row:
    raw, tokenized, parse = _split(line, 3, _COLUMNS[3])
    try:
        return _row(Frame.from_brackets(parse, raw))
    except FrameError:
        # TOP changed a few raw utterances (other quotation marks), but not the tokenized ones.
        return _row(Frame.from_brackets(parse, tokenized))


def _parse_pair(line: str) -> Row:
    utterance, parse = _split(line, 2, _COLUMNS[2])
    return _row(Frame.from_brackets(parse, utterance))


def _parse_tree(line: str) -> Row:
    (text,) = _split(line, 1, _COLUMNS[1])
    if text.lstrip().startswith(TOP_OPENINGS):
        return _row(Frame.from_brackets(text))
    return Row(_labels_only(parse_brackets(text, any_label=True)))


def _parse_json(line: str) -> Row:
    value = json_object(line)
    domain = value.pop("domain", None)
    if domain is not None and not isinstance(domain, str):
        raise DataError(f"'domain' must be a text, got {domain!r:.60}")
    match value:
        case {"parse": str(parse), "utterance": str(utterance), **rest} if not rest:
            return _row(Frame.from_brackets(parse, utterance), domain)
        case {"parse": str(parse), **rest} if not rest:
            return _row(Frame.from_brackets(parse), domain)
        case {"tree": rows, **rest} if not rest:
            return Row(_labels_only(tree_from_rows(rows)), domain=domain)
        case {"skeleton": _}:
            return _row(Frame.from_json(value), domain)
    raise DataError(
        "expected an object with 'utterance' and 'parse', or 'tree' (a list of nodes), or a frame "
        f"('utterance', 'words', 'skeleton', 'spans'); found the keys {', '.join(map(repr, value)) or 'none'}"
    )


def _row(frame: Frame, domain: str | None = None) -> Row:
    return Row(frame.skeleton, frame, domain)


def _labels_only(tree: Node) -> Node:
    if not tree.is_skeleton:
        raise DataError("a tree that is not a parse in IN: and SL: labels must not hold words")
    return tree
