"""Shapes: fragments of trees as tuples of tokens.

A shape lists a fragment in pre-order: a label id (0 or more) opens a node, CLOSE closes it, and PLACEHOLDER stands
where another unit is attached. With the labels A=0 and B=1 the fragment `[A [B ] _ ]` is
`(0, 1, CLOSE, PLACEHOLDER, CLOSE)`. Equal fragments are equal tuples, and joining two fragments is splicing tuples.
"""

from collections.abc import Iterable, Iterator, Sequence

from treepiece.trees.node import Node, TreeBuilder

CLOSE = -1
PLACEHOLDER = -2
PLACEHOLDER_WORD = "_"

Shape = tuple[int, ...]


def splice(shape: Shape, position: int, child: Shape) -> Shape:
    """Return `shape` with `child` inserted before the token at `position`.

    >>> splice((0, 1, CLOSE, CLOSE), 3, (2, CLOSE))  # [A [B ] ] and [C ] give [A [B ] [C ] ]
    (0, 1, -1, 2, -1, -1)
    """
    return shape[:position] + child + shape[position:]


def insert_placeholders(shape: Shape, positions: Sequence[int]) -> Shape:
    """Return `shape` with a placeholder inserted before each of the tokens at `positions`, which are sorted.

    >>> insert_placeholders((0, 1, CLOSE, CLOSE), [1, 3, 3])  # [A [B ] ] gives [A _ [B ] _ _ ]
    (0, -2, 1, -1, -2, -2, -1)
    """
    tokens = list(shape)
    for position in reversed(positions):
        tokens.insert(position, PLACEHOLDER)
    return tuple(tokens)


def remove_placeholders(shape: Shape) -> Shape:
    """Return `shape` without its placeholders."""
    return tuple(token for token in shape if token != PLACEHOLDER)


def placeholder_parents(shape: Shape) -> tuple[int, ...]:
    """Return the label id of the parent of each placeholder, from left to right."""
    return tuple(shape[parent] for position, parent in _edges(shape) if shape[position] == PLACEHOLDER)


def bare(label: int, n_children: int) -> Shape:
    """Return the shape of a node whose children are placeholders only: `[X _ ... _ ]`."""
    return (label, *[PLACEHOLDER] * n_children, CLOSE)


def build_node(tokens: Iterable[int], labels: Sequence[str]) -> Node:
    """Return the tree of a shape; a placeholder becomes the word `_`."""
    builder = TreeBuilder()
    for token in tokens:
        if token == CLOSE:
            builder.close()
        elif token == PLACEHOLDER:
            builder.word(PLACEHOLDER_WORD)
        else:
            builder.open(labels[token])
    assert builder.root is not None  # a shape is balanced
    return builder.root


def is_fragment(tokens: Sequence[int], n_labels: int) -> bool:
    """Return whether `tokens` is one balanced fragment over `n_labels` labels."""
    depth = 0
    for position, token in enumerate(tokens):
        if token >= 0:
            if token >= n_labels or (position > 0 and depth == 0):
                return False
            depth += 1
        elif depth == 0 or token < PLACEHOLDER:
            return False
        elif token == CLOSE:
            depth -= 1
    return bool(tokens) and depth == 0


def count_children(shape: Shape) -> dict[int, int]:
    """Return the number of children, placeholders included, of the node that opens at each position.

    >>> count_children((0, 1, CLOSE, PLACEHOLDER, CLOSE))  # [A [B ] _ ]
    {0: 2, 1: 0}
    """
    counts = {position: 0 for position, token in enumerate(shape) if token >= 0}
    for _, parent in _edges(shape):
        counts[parent] += 1
    return counts


def _edges(shape: Shape) -> Iterator[tuple[int, int]]:
    """Yield the position of each node and placeholder below the root, and the position of its parent."""
    path: list[int] = []
    for position, token in enumerate(shape):
        if token == CLOSE:
            path.pop()
            continue
        if path:
            yield position, path[-1]
        if token >= 0:
            path.append(position)
