"""Trees as flat JSON: a list of nodes in pre-order, each with the index of its parent.

Nested JSON would be easier to read, but JSON libraries limit the depth of nesting; a list has none.
"""

from collections.abc import Sequence
from typing import TypedDict

from treepiece.errors import TreeParseError
from treepiece.trees.node import Kind, Node


class NodeRow(TypedDict, total=False):
    """One node (`label`) or one word (`word`) of a tree; the root has no `parent`."""

    label: str
    word: str
    parent: int


def tree_to_rows(tree: Node) -> list[NodeRow]:
    """Return a tree as a list of rows that `json.dumps` accepts.

    >>> tree_to_rows(Node("IN:A", [Node("SL:B", ["w"])]))
    [{'label': 'IN:A'}, {'label': 'SL:B', 'parent': 0}, {'word': 'w', 'parent': 1}]
    """
    rows: list[NodeRow] = []
    path: list[int] = []
    for kind, text in tree.events():
        if kind is Kind.CLOSE:
            path.pop()
            continue
        row: NodeRow = {"label": text} if kind is Kind.OPEN else {"word": text}
        if path:
            row["parent"] = path[-1]
        if kind is Kind.OPEN:
            path.append(len(rows))
        rows.append(row)
    return rows


def tree_from_rows(rows: object) -> Node:
    """Return the tree of a list of rows; the inverse of `tree_to_rows`."""
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        raise TreeParseError(f"a tree in JSON must be a non-empty list of nodes, got {rows!r:.60}")
    children: list[list[int]] = [[] for _ in rows]
    labels: list[str | None] = []
    for place, row in enumerate(rows):
        text, is_node = _row_text(row, place)
        labels.append(text if is_node else None)
        if place:
            children[_parent(row, place, labels)].append(place)
        elif not is_node or "parent" in row:
            raise TreeParseError("node 0: the first row must be the root, with a label and no parent")
    # Parents precede their children, so in reverse every child is built before its parent.
    built: list[Node | str] = [""] * len(rows)
    for place in range(len(rows) - 1, -1, -1):
        label = labels[place]
        built[place] = rows[place]["word"] if label is None else Node(label, [built[c] for c in children[place]])
    root = built[0]
    assert isinstance(root, Node)  # row 0 was checked to be a label
    return root


def _row_text(row: object, place: int) -> tuple[str, bool]:
    if isinstance(row, dict):
        for key in ("label", "word"):
            text = row.get(key)
            if isinstance(text, str) and text and row.keys() <= {key, "parent"}:
                return text, key == "label"
    raise TreeParseError(f"node {place}: expected {{'label' or 'word': text, 'parent': number}}, got {row!r:.80}")


def _parent(row: NodeRow, place: int, labels: Sequence[str | None]) -> int:
    parent = row.get("parent")
    if not isinstance(parent, int) or isinstance(parent, bool) or not 0 <= parent < place:
        raise TreeParseError(f"node {place}: 'parent' must be the index of an earlier node, got {parent!r}")
    if labels[parent] is None:
        raise TreeParseError(f"node {place}: its parent, row {parent}, is a word and cannot have children")
    return parent
