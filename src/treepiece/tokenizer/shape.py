"""Fragments of trees as flat token strings.

A shape is the pre-order walk of a fragment: a label id (0 or more) opens a node, CLOSE closes it, HOLE is a placeholder
where another unit is joined. With labels A=0, B=1, C=2 the fragment `[A [B ] _ ]` is `(0, 1, CLOSE, HOLE, CLOSE)`.
Joining fragments is splicing tuples, and equal fragments are equal tuples.
"""

from collections.abc import Iterable, Sequence

from treepiece.trees.node import Node, TreeBuilder

CLOSE = -1
HOLE = -2
PLACEHOLDER = "_"

Shape = tuple[int, ...]


def splice(shape: Shape, slot: int, child: Shape) -> Shape:
    """Return `shape` with `child` put in before its token number `slot`.

    >>> splice((0, 1, CLOSE, CLOSE), 3, (2, CLOSE))  # [A [B ] ] and [C ] behind the B
    (0, 1, -1, 2, -1, -1)
    """
    return shape[:slot] + child + shape[slot:]


def with_holes(shape: Shape, slots: Sequence[int]) -> Shape:
    """Return `shape` with a placeholder put in before each of the token numbers `slots`, which rise.

    >>> with_holes((0, 1, CLOSE, CLOSE), [1, 3, 3])  # [A _ [B ] _ _ ]
    (0, -2, 1, -1, -2, -2, -1)
    """
    tokens: list[int] = []
    done = 0
    for slot in slots:
        tokens += shape[done:slot]
        tokens.append(HOLE)
        done = slot
    tokens += shape[done:]
    return tuple(tokens)


def without_holes(shape: Shape) -> Shape:
    """Return `shape` without its placeholders."""
    return tuple(token for token in shape if token != HOLE)


def hole_parents(shape: Shape) -> tuple[int, ...]:
    """Return, for each placeholder from left to right, the label id of the node it hangs from."""
    parents = []
    path: list[int] = []
    for token in shape:
        if token == HOLE:
            parents.append(path[-1])
        elif token == CLOSE:
            path.pop()
        else:
            path.append(token)
    return tuple(parents)


def bare(label: int, n_children: int) -> Shape:
    """Return the shape of one node with nothing but placeholders below it: `[X _ ... _ ]`."""
    return (label, *[HOLE] * n_children, CLOSE)


def build_node(tokens: Iterable[int], labels: Sequence[str]) -> Node:
    """Return the tree of a shape; a placeholder becomes the word `_`."""
    builder = TreeBuilder()
    for token in tokens:
        if token == CLOSE:
            builder.close()
        elif token == HOLE:
            builder.word(PLACEHOLDER)
        else:
            builder.open(labels[token])
    assert builder.root is not None  # a shape is balanced
    return builder.root


def is_fragment(tokens: Sequence[int], n_labels: int) -> bool:
    """Return whether `tokens` is one balanced fragment over `n_labels` labels."""
    depth = 0
    for place, token in enumerate(tokens):
        if token >= 0:
            if token >= n_labels or (place > 0 and depth == 0):
                return False
            depth += 1
        elif depth == 0 or token < HOLE:
            return False
        elif token == CLOSE:
            depth -= 1
    return bool(tokens) and depth == 0


def count_children(shape: Shape) -> dict[int, int]:
    """Return how many children, placeholders included, the node has that opens at each place.

    >>> count_children((0, 1, CLOSE, HOLE, CLOSE))  # [A [B ] _ ]
    {0: 2, 1: 0}
    """
    counts: dict[int, int] = {}
    path: list[int] = []
    for place, token in enumerate(shape):
        if token == CLOSE:
            path.pop()
            continue
        if path:
            counts[path[-1]] += 1
        if token >= 0:
            counts[place] = 0
            path.append(place)
    return counts
