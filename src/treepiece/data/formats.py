"""The formats of a line: columns separated by tabs, or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable

from treepiece.data.rows import Row
from treepiece.errors import DataError, FrameError
from treepiece.trees.brackets import parse_brackets
from treepiece.trees.frame import Frame
from treepiece.trees.labels import TOP_PREFIXES
from treepiece.trees.node import Node
from treepiece.trees.rows import tree_from_rows

ParseLine = Callable[[str], Row]

_PARSE_COLUMN = ("parse", "semantic_parse", "seqlogical")  # how headers name their last column
_COLUMNS = {
    1: "one column, a tree",
    2: "two columns, utterance and parse",
    3: "three columns, utterance, tokenized utterance and parse",
}


def choose_format(first_line: str) -> tuple[ParseLine, bool]:
    """Return what reads the lines of a file, and whether the first line is a header.

    TOPv2 files have a header that begins with `domain`; TOP's have three columns; two columns are utterance and parse;
    a single column is a tree; a line that starts with `{` is JSON.
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
        # A few of TOP's raw utterances were changed on the way (other quotation marks); the tokenized ones were not.
        return _row(Frame.from_brackets(parse, tokenized))


def _parse_pair(line: str) -> Row:
    utterance, parse = _split(line, 2, _COLUMNS[2])
    return _row(Frame.from_brackets(parse, utterance))


def _parse_tree(line: str) -> Row:
    (text,) = _split(line, 1, _COLUMNS[1])
    if text.lstrip().startswith(tuple("[" + prefix for prefix in TOP_PREFIXES)):
        return _row(Frame.from_brackets(text))
    return Row(_labels_only(parse_brackets(text, any_label=True)))


def _parse_json(line: str) -> Row:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, got {line!r:.60}")
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
