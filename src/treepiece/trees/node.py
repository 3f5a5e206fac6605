"""`Node`, an immutable labelled ordered tree.

A child is a node or a word. A label is any text. In TOP trees it is an intent (`IN:`) or a slot (`SL:`); the paper
calls such a node an *ontology*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import accumulate
from typing import NoReturn, final

INTENT_PREFIX = "IN:"
SLOT_PREFIX = "SL:"
TOP_PREFIXES = (INTENT_PREFIX, SLOT_PREFIX)


def is_slot(label: str) -> bool:
    """Return whether `label` names a slot.

    >>> is_slot("SL:TODO"), is_slot("IN:CREATE_REMINDER")
    (True, False)
    """
    return label.startswith(SLOT_PREFIX)


class Kind(Enum):
    """The kind of an event in the traversal of a tree."""

    OPEN = "open"
    WORD = "word"
    CLOSE = "close"


Event = tuple[Kind, str]
"""One step of a traversal: a node opens or closes (with its label), or a word occurs."""


@final
class Node:
    """A label and its children, each a node or a word.

    A tree without words is a *skeleton*. No method recurses, so depth is limited by memory only. The hash is computed
    once, from the hashes of the children, which makes trees cheap dictionary keys.

    >>> Node("IN:A", [Node("SL:B", ["two", "words"])])
    Node('[IN:A [SL:B two words ] ]')
    """

    __slots__ = ("_hash", "children", "is_skeleton", "label")

    label: str
    children: tuple[Node | str, ...]
    is_skeleton: bool
    _hash: int

    def __init__(self, label: str, children: Iterable[Node | str] = ()) -> None:
        if not isinstance(label, str) or not label:
            raise TypeError(f"a label must be a non-empty string, got {label!r}")
        if isinstance(children, str):
            raise TypeError(
                f"the children of {label!r} must be a list of nodes and words, not the text {children!r:.40}"
            )
        children = tuple(children)
        is_skeleton = True
        for child in children:
            if isinstance(child, Node):
                is_skeleton &= child.is_skeleton
            elif isinstance(child, str):
                is_skeleton = False
            else:
                raise TypeError(f"a child of {label!r} must be a Node or a word, got {type(child).__name__}")
        set_ = object.__setattr__
        set_(self, "label", label)
        set_(self, "children", children)
        set_(self, "is_skeleton", is_skeleton)
        set_(self, "_hash", hash((label, children)))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Node cannot be changed: create a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Node cannot be changed: {name!r} cannot be deleted")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Node):
            return NotImplemented
        pairs: list[tuple[Node, Node]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a._hash != b._hash or a.label != b.label or len(a.children) != len(b.children):
                return False
            for x, y in zip(a.children, b.children, strict=True):
                if x is y:
                    continue
                if isinstance(x, Node) and isinstance(y, Node):
                    pairs.append((x, y))
                elif isinstance(x, Node) or isinstance(y, Node) or x != y:
                    return False
        return True

    def __reduce__(self) -> tuple[object, ...]:
        # Flat, because copying and pickling a nested value recurses, which fails on a deep tree.
        return build_tree, (tuple((kind.value, text) for kind, text in self.events()),)

    def __repr__(self) -> str:
        return f"Node({write_events(self, str, str)!r})"

    def _repr_svg_(self) -> str:
        from treepiece.trees.drawing import svg

        return svg(self)

    def events(self) -> Iterator[Event]:
        """Yield the events of a depth-first traversal from left to right.

        >>> [text for _, text in Node("A", [Node("B", ["w"])]).events()]
        ['A', 'B', 'w', 'B', 'A']
        """
        yield Kind.OPEN, self.label
        path: list[tuple[Node, Iterator[Node | str]]] = [(self, iter(self.children))]
        while path:
            node, rest = path[-1]
            for child in rest:
                if isinstance(child, Node):
                    yield Kind.OPEN, child.label
                    path.append((child, iter(child.children)))
                    break
                yield Kind.WORD, child
            else:
                yield Kind.CLOSE, node.label
                path.pop()

    def nodes(self) -> Iterator[Node]:
        """Yield this node and all below it in pre-order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(child for child in reversed(node.children) if isinstance(child, Node))

    @property
    def n_nodes(self) -> int:
        """The number of nodes, not counting words."""
        return sum(1 for _ in self.nodes())

    @property
    def depth(self) -> int:
        """The number of nodes on the longest path down from the root.

        >>> Node("A", [Node("B"), Node("C", [Node("D")])]).depth
        3
        """
        steps = {Kind.OPEN: 1, Kind.WORD: 0, Kind.CLOSE: -1}
        return max(accumulate(steps[kind] for kind, _ in self.events()))


def write_events(tree: Node, write_label: Callable[[str], str], write_word: Callable[[str], str]) -> str:
    """Return a tree as brackets, its labels and words as the two functions write them.

    >>> write_events(Node("a", [Node("b", ["w"])]), str.upper, str)
    '[A [B w ] ]'
    """
    return " ".join(
        "]" if kind is Kind.CLOSE else f"[{write_label(text)}" if kind is Kind.OPEN else write_word(text)
        for kind, text in tree.events()
    )


class TreeBuilder:
    """Builds a tree event by event; `root` is the tree once its root node has closed.

    `make` creates each node, for callers that share equal nodes.

    >>> builder = TreeBuilder()
    >>> builder.open("A"); builder.word("w"); builder.close()
    >>> builder.root
    Node('[A w ]')
    """

    def __init__(self, make: Callable[[str, tuple[Node | str, ...]], Node] = Node) -> None:
        self.root: Node | None = None
        self._make = make
        self._open: list[tuple[str, list[Node | str]]] = []

    def open(self, label: str) -> None:
        """Open a node below the innermost open node."""
        self._open.append((label, []))

    def word(self, word: str) -> None:
        """Add a word to the innermost open node."""
        self._open[-1][1].append(word)

    def close(self) -> None:
        """Close the innermost open node."""
        label, children = self._open.pop()
        node = self._make(label, tuple(children))
        if self._open:
            self._open[-1][1].append(node)
        else:
            self.root = node


def build_tree(
    events: Iterable[tuple[Kind | str, str]], make: Callable[[str, tuple[Node | str, ...]], Node] = Node
) -> Node:
    """Return the tree with the given events; the inverse of `Node.events`. `make` creates each node."""
    builder = TreeBuilder(make)
    for kind, text in events:
        match Kind(kind):
            case Kind.OPEN:
                builder.open(text)
            case Kind.WORD:
                builder.word(text)
            case Kind.CLOSE:
                builder.close()
    if builder.root is None:
        raise ValueError("the events end before the root closes")
    return builder.root
