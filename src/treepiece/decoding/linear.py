"""Frames written as one sequence of tokens, as the baselines write them: labels, span pointers, closing brackets.

    [IN:A x [SL:B two words ] ]   is   IN:A  SL:B  @1  @2  ]  ]

A slot without child nodes holds two pointers, to the first and the last subword of its span. What may come next is
decided by what is open, so that a decoder that keeps to it writes a valid frame whatever its scores are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from treepiece.decoding.grammar import Bools, Pair
from treepiece.errors import OptionError
from treepiece.trees.align import Span
from treepiece.trees.frame import walk_leaves
from treepiece.trees.labels import is_slot
from treepiece.trees.node import Kind, Node, TreeBuilder


class LinearVocabulary:
    """Numbers for tokens: the labels, then the closing bracket, then subword 0 and those after it.

    >>> vocabulary = LinearVocabulary(["IN:A", "SL:B"])
    >>> tokens = vocabulary.write(Node("IN:A", [Node("SL:B")]), [Span(1, 3)])
    >>> tokens
    [0, 1, 4, 5, 2, 2]
    >>> vocabulary.read(tokens)
    (Node('[IN:A [SL:B ] ]'), [Span(start=1, end=3)])
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self.numbers = {label: number for number, label in enumerate(self.labels)}
        self.is_slot = np.array([is_slot(label) for label in self.labels], bool)
        self.close = len(self.labels)
        self.first_pointer = self.close + 1

    def write(self, skeleton: Node, spans: Sequence[Span]) -> list[int]:
        """Return the tokens of a skeleton and the spans of its leaves, in subwords; an empty span has no pointers."""
        rest = iter(spans)
        tokens: list[int] = []
        for kind, label, is_leaf in walk_leaves(skeleton):
            if is_leaf:
                tokens += self.write_span(next(rest))
            tokens.append(self.numbers[label] if kind is Kind.OPEN else self.close)
        return tokens

    def write_span(self, span: Span) -> list[int]:
        """Return the pointers of a span: to its first and its last subword, none if it is empty."""
        first = self.first_pointer
        return [first + span.start, first + span.end - 1] if span.start < span.end else []

    def read(self, tokens: Iterable[int]) -> tuple[Node, list[Span]]:
        """Return the skeleton and the spans of a whole sequence of tokens; the inverse of `write`."""
        builder = TreeBuilder()
        spans: list[Span] = []
        pointers: list[int] = []
        opened = -1  # the label that was opened last, as long as nothing but pointers has come since
        for token in tokens:
            if token >= self.first_pointer:
                pointers.append(token - self.first_pointer)
            elif token == self.close:
                if opened >= 0 and self.is_slot[opened]:
                    end = spans[-1].end if spans else 0
                    spans.append(Span(pointers[0], pointers[1] + 1) if pointers else Span(end, end))
                pointers, opened = [], -1
                builder.close()
            else:
                opened = token
                builder.open(self.labels[token])
        if builder.root is None:
            raise OptionError("the tokens end before the tree is closed")
        return builder.root, spans


@dataclass(frozen=True)
class LinearState:
    """A sequence that is being written: its tokens, the labels that are open, and what has come since the last opened.

    `n_pointers` counts the pointers below the innermost open node, `is_leaf` tells whether nothing else is there, and
    `free` is the first subword that no span has taken.
    """

    n_subwords: int
    tokens: tuple[int, ...] = ()
    open: tuple[int, ...] = ()
    n_pointers: int = 0
    is_leaf: bool = True
    free: int = 0
    log_p: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether the root is closed."""
        return bool(self.tokens) and not self.open


class LinearGrammar:
    """Says which token may come next: child labels that training had, pointers in order, an end within the budget."""

    def __init__(self, vocabulary: LinearVocabulary, pairs: Iterable[Pair], *, budget: int) -> None:
        self.vocabulary = vocabulary
        self.budget = budget
        n_labels = len(vocabulary.labels)
        self._cost = np.where(vocabulary.is_slot, 4, 2)  # tokens from opening to closing, at the least
        self._below = np.zeros((n_labels + 1, n_labels), bool)  # the last row is for the root
        for parent, child in pairs:
            row = n_labels if parent is None else vocabulary.numbers[parent]
            self._below[row, vocabulary.numbers[child]] = True
        if budget < 4 or not self._below[n_labels].any():
            raise OptionError(f"a frame needs a label for its root and a budget of 4 tokens, got {budget}")

    def allowed(self, state: LinearState) -> Bools:
        """Return which tokens may come next, one boolean a token."""
        vocabulary = self.vocabulary
        allowed = np.zeros(vocabulary.first_pointer + state.n_subwords, bool)
        left = self.budget - len(state.tokens) - len(state.open)  # tokens to spend if all is closed at once
        if not state.open:
            allowed[: vocabulary.close] = self._below[-1] & (self._cost <= left)
            return allowed
        label = state.open[-1]
        pointers = allowed[vocabulary.first_pointer :]
        if state.n_pointers == 1:
            pointers[state.tokens[-1] - vocabulary.first_pointer :] = True
            return allowed
        may_point = bool(vocabulary.is_slot[label]) and state.is_leaf and state.n_pointers == 0
        if may_point and left >= 2:
            pointers[state.free :] = True
        if state.n_pointers == 0:
            allowed[: vocabulary.close] = self._below[label] & (self._cost <= left)
        allowed[vocabulary.close] = not pointers.any()  # a slot that could point to something must
        return allowed

    def extend(self, state: LinearState, token: int, log_p: float) -> LinearState:
        """Return the sequence with one more token."""
        vocabulary = self.vocabulary
        tokens, log_p = (*state.tokens, token), state.log_p + log_p
        if token >= vocabulary.first_pointer:
            free = token - vocabulary.first_pointer + 1 if state.n_pointers else state.free
            return replace(state, tokens=tokens, log_p=log_p, n_pointers=state.n_pointers + 1, free=free)
        if token == vocabulary.close:
            return replace(state, tokens=tokens, log_p=log_p, open=state.open[:-1], n_pointers=0, is_leaf=False)
        return replace(state, tokens=tokens, log_p=log_p, open=(*state.open, token), n_pointers=0, is_leaf=True)
