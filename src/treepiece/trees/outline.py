"""Trees drawn with characters, for terminals."""

from __future__ import annotations

from collections.abc import Sequence

from treepiece.trees.node import Node
from treepiece.trees.sketch import Box, Limits, sketch

_COLOURS = (33, 208, 35, 170, 178, 44, 203, 105)  # of 256, told apart on light and dark grounds
_PLAIN = dict.fromkeys((*range(32), *range(127, 160), *range(0xD800, 0xE000)), "\ufffd")
"""Control characters would move the cursor, and lone surrogates cannot be written at all."""


def outline(
    tree: Node,
    units: Sequence[int] | None = None,
    *,
    colour: bool = False,
    quote: bool = True,
    limits: Limits | None = None,
) -> str:
    """Return a tree as indented lines; with `units`, the unit of each node in pre-order, cuts are dotted.

    Words stand in quotation marks, unless `quote` is False.

    >>> print(outline(Node("A", [Node("B", ["two", "words"]), Node("C")]), units=[0, 0, 1]))
    A                  1
    ├── B "two words"  1
    └┄┄ C              2
    """
    boxes = sketch(tree, units, limits)
    is_last = _last_children(boxes)
    inline = _inline_words(boxes)
    written = set(inline.values())
    rails: list[str] = []
    lines: list[tuple[str, str, Box]] = []
    for place, box in enumerate(boxes):
        if place in written:
            continue
        del rails[max(box.depth - 1, 0) :]
        branch = ""
        if box.parent is not None:
            above = boxes[box.parent]
            dash = "┄┄" if box.unit != above.unit and not box.is_words else "──"
            branch = "".join(rails) + ("└" if is_last[place] else "├") + dash + " "
            rails.append("    " if is_last[place] else "│   ")
        mark = '"' if quote else ""
        words = f" {mark}{boxes[inline[place]].text}{mark}" if place in inline else ""
        text = f"{mark}{box.text}{mark}" if box.is_words else box.text + words
        lines.append((branch, " ".join(filter(None, (text, box.hidden_note))).translate(_PLAIN), box))
    return "\n".join(_finish(lines, colour=colour))


def _last_children(boxes: Sequence[Box]) -> list[bool]:
    last: dict[int | None, int] = {box.parent: place for place, box in enumerate(boxes)}
    return [last[box.parent] == place for place, box in enumerate(boxes)]


def _inline_words(boxes: Sequence[Box]) -> dict[int, int]:
    """Return the boxes whose only child is a run of words, which is written on the same line."""
    n_children: dict[int | None, int] = {}
    for box in boxes:
        n_children[box.parent] = n_children.get(box.parent, 0) + 1
    return {
        box.parent: place
        for place, box in enumerate(boxes)
        if box.is_words and box.parent is not None and n_children[box.parent] == 1
    }


def _finish(lines: Sequence[tuple[str, str, Box]], *, colour: bool) -> list[str]:
    width = max(len(branch) + len(text) for branch, text, _ in lines)
    result = []
    for branch, text, box in lines:
        number = ""
        if box.unit is not None:
            number = " " * (width - len(branch) - len(text)) + f"  {box.unit + 1}"
            if colour:
                text = f"\x1b[1;38;5;{_COLOURS[box.unit % len(_COLOURS)]}m{text}\x1b[0m"
        result.append(branch + text + number)
    return result
