"""Bracket text, such as `[IN:X word [SL:Y word ] ]`: parsing and formatting.

Tokens are separated by whitespace. In TOP text a token that starts with `[IN:` or `[SL:` opens a node, `]` closes one,
and everything else is a word, so an utterance may contain brackets of its own. With `any_label=True` every token that
starts with `[` opens a node.
"""

import json
import re
from collections.abc import Iterator
from functools import partial

from treepiece.errors import TreeParseError
from treepiece.trees.node import TOP_PREFIXES, Event, Kind, Node, build_tree, write_events

_BLANKS = " \t\r\n"
_TOKEN = re.compile(f"[^{_BLANKS}]+")
TOP_OPENINGS = tuple("[" + prefix for prefix in TOP_PREFIXES)


def parse_brackets(text: str, *, any_label: bool = False) -> Node:
    """Return the tree of bracket text.

    >>> parse_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]").children
    ('rain', Node('[SL:DATE_TIME today ]'))
    """
    return build_tree(scan_brackets(text, any_label=any_label))


def scan_brackets(text: str, *, any_label: bool = False) -> Iterator[Event]:
    """Yield the events of bracket text; raise if it is not exactly one tree."""
    openings: tuple[str, ...] = ("[",) if any_label else TOP_OPENINGS
    path: list[tuple[str, int]] = []
    closed_at = 0
    odd_word = ""
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "]":
            if not path:
                raise TreeParseError(f"']' closes nothing{_hint(odd_word)}", match.start() + 1)
            yield Kind.CLOSE, path.pop()[0]
            closed_at = match.end()
        elif token.startswith(openings):
            if closed_at and not path:
                raise TreeParseError(
                    f"{token!r} starts a second tree: expected one tree per text{_hint(odd_word)}", match.start() + 1
                )
            label = _label(token, openings, match.start() + 1)
            path.append((label, match.start() + 1))
            yield Kind.OPEN, label
        elif not path:
            wanted = "[LABEL" if any_label else "[IN: or [SL:"
            raise TreeParseError(
                f"the word {token!r} is outside the tree, which begins with {wanted} and ends with its ']'"
                f"{_hint(odd_word)}",
                match.start() + 1,
            )
        else:
            if token.startswith("["):
                odd_word = odd_word or token
            yield Kind.WORD, token
    if path:
        raise TreeParseError(_still_open(path, text), len(text) + 1)
    if not closed_at:
        raise TreeParseError("no tree in an empty text: expected something like '[IN:X word [SL:Y word ] ]'", 1)


def _still_open(path: list[tuple[str, int]], text: str) -> str:
    label, column = path[-1]
    glued = next((word for word in text.split() if word.endswith("]") and word != "]"), None)
    if glued:
        return f"[{label} of col {column} is still open: {glued!r} was read as a word, put a space before each ']'"
    if len(path) > 8:
        return f"the text ends but {len(path)} brackets are still open, the last of them [{label} of col {column}"
    return f"the text ends but [{label} of col {column} is still open: add {' '.join(']' * len(path))!r}"


def _label(token: str, openings: tuple[str, ...], column: int) -> str:
    if token in openings:
        raise TreeParseError(f"{token!r} has no name: expected something like '{token}NAME'", column)
    label = token[1:]
    if "[" in label or "]" in label:
        raise TreeParseError(f"the label {label!r} contains a bracket: put a space before each bracket", column)
    return label


def _hint(odd_word: str) -> str:
    return f" ({odd_word!r} before it was read as a word: labels start with IN: or SL:)" if odd_word else ""


def format_brackets(tree: Node, *, any_label: bool = False) -> str:
    """Return the bracket text of a tree; the inverse of `parse_brackets`.

    A tree whose text would parse differently, such as one with the word `]`, is an error.

    >>> format_brackets(Node("IN:GET_WEATHER", ["rain", Node("SL:DATE_TIME", ["today"])]))
    '[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]'
    """
    openings = ("[",) if any_label else TOP_OPENINGS
    return write_events(tree, partial(_writable_label, any_label=any_label), partial(_writable_word, openings=openings))


def quote_label(label: str) -> str:
    """Return a label unchanged if bracket text can express it, else in quotation marks (for display only).

    >>> quote_label("SL:TODO"), quote_label("to do")
    ('SL:TODO', '"to do"')
    """
    return label if _is_plain(label) else json.dumps(label)


def _is_plain(label: str) -> bool:
    return not any(mark in label for mark in _BLANKS + "[]")


def _writable_label(label: str, *, any_label: bool) -> str:
    is_named = any_label or (label.startswith(TOP_PREFIXES) and label not in TOP_PREFIXES)
    if not (is_named and _is_plain(label)):
        wanted = "no whitespace or brackets" if any_label else "a name after IN: or SL:, no whitespace and no brackets"
        raise TreeParseError(f"the label {label!r} cannot be written as bracket text: it needs {wanted}")
    return label


def _writable_word(word: str, *, openings: tuple[str, ...]) -> str:
    if not word or word == "]" or word.startswith(openings) or any(blank in word for blank in _BLANKS):
        raise TreeParseError(
            f"the word {word!r} cannot be written as bracket text: it would parse as something else; use JSON instead"
        )
    return word
