"""What a drawing of a tree shows, before it is drawn: boxes with their parents, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treepiece.errors import OptionError
from treepiece.trees.node import Kind, Node


@dataclass
class Box:
    """A node, or a run of words below one.

    `unit` is the place of the unit that the node belongs to, None where units are not drawn; `n_hidden` counts the
    nodes below that are too many to draw.
    """

    text: str
    is_words: bool
    parent: int | None
    depth: int
    unit: int | None = None
    n_hidden: int = 0

    @property
    def hidden_note(self) -> str:
        """What stands for the nodes that are not drawn."""
        return f"… {self.n_hidden:,} more" if self.n_hidden else ""


@dataclass(frozen=True)
class Limits:
    """How much is drawn: a drawing is for eyes, and those of a very deep or wide tree would not fit in memory."""

    depth: int = 64
    boxes: int = 2_000

    def __post_init__(self) -> None:
        if self.depth < 1 or self.boxes < 1:
            raise OptionError(f"a drawing shows one level and one box at the least, got {self}")


def sketch(tree: Node, units: Sequence[int] | None = None, limits: Limits | None = None) -> list[Box]:
    """Return the boxes of a drawing in pre-order; `units` gives the unit of each node in pre-order.

    >>> [(box.text, box.parent) for box in sketch(Node("A", ["two", "words", Node("B")]))]
    [('A', None), ('two words', 0), ('B', 0)]
    """
    limits = limits or Limits()
    boxes: list[Box] = []
    path: list[int] = []  # the boxes of the open nodes
    n_skipped = 0  # how many open nodes have no box
    n_nodes = 0
    for kind, text in tree.events():
        if kind is Kind.CLOSE:
            if n_skipped:
                n_skipped -= 1
            else:
                path.pop()
            continue
        is_full = n_skipped or len(path) >= limits.depth or len(boxes) >= limits.boxes
        if kind is Kind.OPEN:
            unit = _unit(units, n_nodes)
            n_nodes += 1
            if is_full:
                n_skipped += 1
                boxes[path[-1]].n_hidden += 1
            else:
                boxes.append(Box(text, False, path[-1] if path else None, len(path), unit))
                path.append(len(boxes) - 1)
        elif not is_full:
            _add_word(boxes, text, path)
    if units is not None and len(units) != n_nodes:
        raise OptionError(f"there are units for {len(units)} nodes but the tree has {n_nodes}")
    return boxes


def _unit(units: Sequence[int] | None, node: int) -> int | None:
    return units[node] if units is not None and node < len(units) else None


def _add_word(boxes: list[Box], word: str, path: list[int]) -> None:
    last = boxes[-1]
    if last.is_words and last.parent == path[-1]:
        last.text += " " + word
    else:
        boxes.append(Box(word, True, path[-1], len(path)))
