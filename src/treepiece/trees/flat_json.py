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
    for place, row in enumerate(rows):
        _check_row(row, place)
        if place:
            _check_parent(rows, place)
        elif "word" in row or "parent" in row:
            raise TreeParseError("node 0: the first row must be the root, with a label and no parent")
    # Parents precede their children, so in reverse every child is built before its parent.
    children: list[list[Node | str]] = [[] for _ in rows]  # of each node, from right to left
    for place in range(len(rows) - 1, 0, -1):
        row = rows[place]
        child = row["word"] if "word" in row else Node(row["label"], reversed(children[place]))
        children[row["parent"]].append(child)
    return Node(rows[0]["label"], reversed(children[0]))


def _check_row(row: object, place: int) -> None:
    if isinstance(row, dict):
        for key in ("label", "word"):
            text = row.get(key)
            if isinstance(text, str) and text and row.keys() <= {key, "parent"}:
                return
    raise TreeParseError(f"node {place}: expected {{'label' or 'word': text, 'parent': number}}, got {row!r:.80}")


def _check_parent(rows: Sequence[NodeRow], place: int) -> None:
    parent = rows[place].get("parent")
    if not isinstance(parent, int) or isinstance(parent, bool) or not 0 <= parent < place:
        raise TreeParseError(f"node {place}: 'parent' must be the index of an earlier node, got {parent!r}")
    if "word" in rows[parent]:
        raise TreeParseError(f"node {place}: its parent, row {parent}, is a word and cannot have children")
