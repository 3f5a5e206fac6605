"""Frames as one sequence of tokens, as the baselines generate them: labels, span pointers, closing brackets.

    [IN:A x [SL:B two words ] ]   is   IN:A  SL:B  @1  @2  ]  ]

A slot without child nodes holds two pointers, to the first and the last subword of its span. The open nodes determine
which tokens may follow, so that a constrained decoder generates a valid frame whatever its scores are.

The baselines and the reranker read and generate such sequences; the span decoder reads them without pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from treepiece.decoding.search import Bools, Pair, Score, beam_search, pair_table
from treepiece.decoding.types import Hypothesis
from treepiece.errors import OptionError
from treepiece.trees.align import Span
from treepiece.trees.frame import walk_leaves
from treepiece.trees.node import Kind, Node, TreeBuilder, is_slot


class TokenVocabulary:
    """The ids of tokens: the labels, then the closing bracket, then the subwords in order.

    >>> vocabulary = TokenVocabulary(["IN:A", "SL:B"])
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
        opened = -1  # the label that was opened last, while only pointers have followed
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
class TokenState:
    """A partial sequence: its tokens, the open labels, and the state of the innermost open node.

    `n_pointers` counts the pointers below the innermost open node, `is_leaf` is whether it has no other children, and
    `free` is the first subword after all spans.
    """

    n_subwords: int
    tokens: tuple[int, ...] = ()
    open: tuple[int, ...] = ()
    n_pointers: int = 0
    is_leaf: bool = True
    free: int = 0
    token_log_p: tuple[float, ...] = ()

    @property
    def log_p(self) -> float:
        """The log-probability of the tokens so far."""
        return sum(self.token_log_p)

    @property
    def is_complete(self) -> bool:
        """Whether the root is closed."""
        return bool(self.tokens) and not self.open


class TokenGrammar:
    """The grammar of tokens: child labels seen in training, pointers in order, an end within the budget."""

    def __init__(self, vocabulary: TokenVocabulary, pairs: Iterable[Pair], *, budget: int) -> None:
        self.vocabulary = vocabulary
        self.budget = budget
        self._cost = np.where(vocabulary.is_slot, 4, 2)  # the least number of tokens from opening to closing
        self._below = pair_table(pairs, vocabulary.numbers, len(vocabulary.labels))
        if budget < 4 or not self._below[-1].any():
            raise OptionError(f"a frame needs a label for its root and a budget of 4 tokens, got {budget}")

    def allowed(self, state: TokenState) -> Bools:
        """Return which tokens may come next, one boolean per token."""
        vocabulary = self.vocabulary
        allowed = np.zeros(vocabulary.first_pointer + state.n_subwords, bool)
        left = self.budget - len(state.tokens) - len(state.open)  # the tokens left if all nodes are closed now
        if not state.open:
            allowed[: vocabulary.close] = self._below[-1] & (self._cost <= left)
            return allowed
        label = state.open[-1]
        pointers = allowed[vocabulary.first_pointer :]
        if state.n_pointers == 1:
            pointers[state.tokens[-1] - vocabulary.first_pointer :] = True
            return allowed
        if state.n_pointers == 0:
            if vocabulary.is_slot[label] and state.is_leaf and left >= 2:
                pointers[state.free :] = True
            allowed[: vocabulary.close] = self._below[label] & (self._cost <= left)
        allowed[vocabulary.close] = not pointers.any()  # a slot must point to something if it can
        return allowed

    def extend(self, state: TokenState, token: int, log_p: float) -> TokenState:
        """Return the sequence with one more token."""
        vocabulary = self.vocabulary
        longer = replace(state, tokens=(*state.tokens, token), token_log_p=(*state.token_log_p, log_p))
        if token >= vocabulary.first_pointer:
            free = token - vocabulary.first_pointer + 1 if state.n_pointers else state.free
            return replace(longer, n_pointers=state.n_pointers + 1, free=free)
        if token == vocabulary.close:
            return replace(longer, open=state.open[:-1], n_pointers=0, is_leaf=False)
        return replace(longer, open=(*state.open, token), n_pointers=0, is_leaf=True)


def decode_tokens(
    n_subwords: Sequence[int], score: Callable[[], Score[TokenState]], grammar: TokenGrammar, *, nbest: int = 1
) -> list[list[Hypothesis]]:
    """Return up to `nbest` hypotheses of an autoregressive parser for each utterance: the greedy one, then others.

    `score` makes the score function of one search over all utterances; `n_subwords` has their lengths.
    """
    starts = [TokenState(n) for n in n_subwords]
    beams = beam_search(starts, score(), grammar)
    if nbest > 1:  # the greedy result stays first, whatever `nbest` is
        wider = beam_search(starts, score(), grammar, beam=2 * nbest)
        beams = [
            [*best, *(state for state in few if state.tokens != best[0].tokens)][:nbest]
            for best, few in zip(beams, wider, strict=True)
        ]
    return [[_hypothesis(state, grammar.vocabulary) for state in states] for states in beams]


def _hypothesis(state: TokenState, vocabulary: TokenVocabulary) -> Hypothesis:
    skeleton, spans = vocabulary.read(state.tokens)
    span_log_p = pointer_log_p(state.tokens, state.token_log_p, spans, vocabulary)
    skeleton_log_p = state.log_p - sum(span_log_p)
    return Hypothesis.of_parts(skeleton, tuple(spans), skeleton_log_p, span_log_p, passes=len(state.tokens))


def pointer_log_p(
    tokens: Sequence[int], log_p: Sequence[float], spans: Sequence[Span], vocabulary: TokenVocabulary
) -> tuple[float, ...]:
    """Return the log-probability of each span: that of its two pointers. An empty span has none, and is certain."""
    pointers = [value for token, value in zip(tokens, log_p, strict=True) if token >= vocabulary.first_pointer]
    pairs = map(sum, zip(pointers[0::2], pointers[1::2], strict=True))
    return tuple(next(pairs) if span.start < span.end else 0.0 for span in spans)


class SkeletonTokens(NamedTuple):
    """The label ids where nodes open, `closing` where they close, and the indices of the leaves among them."""

    tokens: tuple[int, ...]
    leaves: tuple[int, ...]


def read_skeleton(skeleton: Node, label_ids: Mapping[str, int], closing: int) -> SkeletonTokens:
    """Return the tokens of a skeleton, and the indices at which its utterance leaves open.

    >>> read_skeleton(Node("IN:A", [Node("SL:B"), Node("SL:B")]), {"IN:A": 0, "SL:B": 1}, closing=2)
    SkeletonTokens(tokens=(0, 1, 2, 1, 2, 2), leaves=(1, 3))
    """
    tokens: list[int] = []
    leaves: list[int] = []
    for kind, label, is_leaf in walk_leaves(skeleton):
        if is_leaf:
            leaves.append(len(tokens) - 1)
        tokens.append(label_ids[label] if kind is Kind.OPEN else closing)
    return SkeletonTokens(tuple(tokens), tuple(leaves))
