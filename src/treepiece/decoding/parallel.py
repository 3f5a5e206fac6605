"""The best valid frame of a given length, when all tokens are scored at once.

A non-autoregressive decoder scores every position by itself, and the best token of each rarely makes a tree. Intents
hold slots, and slots hold intents or two pointers; so the depth of a position tells what is open there, and a dynamic
program over positions, depths and what the innermost slot holds finds the best sequence that is a frame.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treepiece.decoding.linear import LinearVocabulary
from treepiece.decoding.spans import best_spans
from treepiece.errors import OptionError

Floats = npt.NDArray[np.float64]


class Token(IntEnum):
    """The kinds of tokens."""

    INTENT = 0
    SLOT = 1
    CLOSE = 2
    POINT = 3


class Inner(IntEnum):
    """What the innermost open node is: an intent, or a slot and what it holds."""

    INTENT = 0
    NEW_SLOT = 1
    ONE_POINTER = 2
    TWO_POINTERS = 3
    PARENT_SLOT = 4


class Move(NamedTuple):
    """What a token does: from one innermost node to another, and how the depth changes."""

    before: Inner
    token: Token
    after: Inner
    deeper: int
    cost: float = 0.0


_EMPTY = -1e9  # a slot with nothing in it: taken only where nothing else fits the length
_MOVES = (
    Move(Inner.INTENT, Token.SLOT, Inner.NEW_SLOT, 1),
    Move(Inner.INTENT, Token.CLOSE, Inner.PARENT_SLOT, -1),
    Move(Inner.NEW_SLOT, Token.POINT, Inner.ONE_POINTER, 0),
    Move(Inner.NEW_SLOT, Token.INTENT, Inner.INTENT, 1),
    Move(Inner.NEW_SLOT, Token.CLOSE, Inner.INTENT, -1, _EMPTY),
    Move(Inner.ONE_POINTER, Token.POINT, Inner.TWO_POINTERS, 0),
    Move(Inner.TWO_POINTERS, Token.CLOSE, Inner.INTENT, -1),
    Move(Inner.PARENT_SLOT, Token.INTENT, Inner.INTENT, 1),
    Move(Inner.PARENT_SLOT, Token.CLOSE, Inner.INTENT, -1),
)
_DONE = Inner.PARENT_SLOT  # at depth 0, after the root has closed


def best_frame_tokens(logits: npt.NDArray[np.floating], vocabulary: LinearVocabulary) -> list[int]:
    """Return the best tokens that make a frame, one for each row of `logits`; there must be an even number of rows.

    Shape: logits (length, labels + 1 + subwords).
    """
    n_tokens = len(logits)
    if n_tokens < 2 or n_tokens % 2:
        raise OptionError(f"a frame has an even number of tokens, 2 or more, got {n_tokens}")
    scores = np.clip(np.nan_to_num(np.asarray(logits, np.float64), nan=-1e4), -1e4, 1e4)
    kinds = best_kinds(_kind_scores(scores, vocabulary))
    return _name_tokens(kinds, scores, vocabulary)


def _kind_scores(scores: Floats, vocabulary: LinearVocabulary) -> Floats:
    """Return the score of the best token of each kind at each position. Shape: (length, 4)."""
    result = np.full((len(scores), len(Token)), -np.inf)
    labels, pointers = scores[:, : vocabulary.close], scores[:, vocabulary.first_pointer :]
    for kind, part in (
        (Token.INTENT, labels[:, ~vocabulary.is_slot]),
        (Token.SLOT, labels[:, vocabulary.is_slot]),
        (Token.POINT, pointers),
    ):
        result[:, kind] = part.max(axis=1, initial=-np.inf)
    result[:, Token.CLOSE] = scores[:, vocabulary.close]
    return result


def best_kinds(scores: Floats) -> list[Token]:
    """Return the best sequence of kinds that is a frame.

    >>> loves_pointers = np.array([[0.0, 0.0, 0.0, 9.0]] * 6)
    >>> [kind.name for kind in best_kinds(loves_pointers)]
    ['INTENT', 'SLOT', 'POINT', 'POINT', 'CLOSE', 'CLOSE']
    """
    n_tokens = len(scores)
    value = np.full((n_tokens + 2, len(Inner)), -np.inf)  # by depth and innermost node
    value[1, Inner.INTENT] = scores[0, Token.INTENT]
    steps = []
    for row in scores[1:]:
        after = np.full_like(value, -np.inf)
        taken = np.full(value.shape, -1)
        for number, move in enumerate(_MOVES):
            reached = np.full(len(value), -np.inf)
            source = value[1:-1, move.before] + row[move.token] + move.cost  # nothing follows at depth 0
            reached[1 + move.deeper : len(value) - 1 + move.deeper] = source
            better = reached > after[:, move.after]
            after[better, move.after] = reached[better]
            taken[better, move.after] = number
        steps.append(taken)
        value = after
    return _trace(steps)


def _trace(steps: list[npt.NDArray[np.int64]]) -> list[Token]:
    depth, inner = 0, _DONE
    kinds: list[Token] = []
    for taken in reversed(steps):
        move = _MOVES[taken[depth, inner]]
        kinds.append(move.token)
        depth, inner = depth - move.deeper, move.before
    return [Token.INTENT, *reversed(kinds)]


def _name_tokens(kinds: list[Token], scores: Floats, vocabulary: LinearVocabulary) -> list[int]:
    """Return the best token of each kind, and for the pointers the best spans together."""
    labels = scores[:, : vocabulary.close]
    best = {
        Token.INTENT: np.where(vocabulary.is_slot, -np.inf, labels).argmax(axis=1),
        Token.SLOT: np.where(vocabulary.is_slot, labels, -np.inf).argmax(axis=1),
    }
    places = [place for place, kind in enumerate(kinds) if kind is Token.POINT]
    pointers = scores[places, vocabulary.first_pointer :]
    spans, _ = best_spans(pointers[0::2], pointers[1::2])
    tokens = []
    pointed = iter(spans)
    for place, kind in enumerate(kinds):
        if kind is Token.POINT:
            if kinds[place - 1] is not Token.POINT:
                tokens += vocabulary.write_span(next(pointed))
        else:
            tokens.append(vocabulary.close if kind is Token.CLOSE else int(best[kind][place]))
    return tokens
