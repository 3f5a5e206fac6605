"""The best valid frame of a given length, for tokens that are all scored at once.

A non-autoregressive decoder scores each position independently, and the best tokens rarely form a tree. Intents hold
slots, and slots hold intents or two pointers; so the depth of a position determines what is open there, and a dynamic
program over positions, depths and the contents of the innermost slot finds the best sequence that is a frame.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treepiece.decoding.linearization import TokenVocabulary, pointer_log_p
from treepiece.decoding.spans import Floats, best_spans
from treepiece.decoding.types import Hypothesis
from treepiece.errors import OptionError


class Token(IntEnum):
    """The kinds of tokens."""

    INTENT = 0
    SLOT = 1
    CLOSE = 2
    POINT = 3


class Inner(IntEnum):
    """The innermost open node: an intent, or a slot and its contents."""

    INTENT = 0
    NEW_SLOT = 1
    ONE_POINTER = 2
    TWO_POINTERS = 3
    PARENT_SLOT = 4


class Move(NamedTuple):
    """The effect of a token: the innermost node before and after it, and the change of the depth."""

    before: Inner
    token: Token
    after: Inner
    deeper: int
    cost: float = 0.0


_EMPTY = -1e9  # an empty slot: taken only if nothing else fits the length
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
# Several moves lead to an intent, one to each other node. Sorted by target, the best are the maximum of the first few,
# and the others unchanged.
_SORTED = tuple(sorted(_MOVES, key=lambda move: move.after))
_TO_INTENT = sum(move.after is Inner.INTENT for move in _MOVES)
_TOKENS = [move.token for move in _SORTED]
_COSTS = np.array([move.cost for move in _SORTED])


def best_frame_tokens(logits: npt.NDArray[np.floating], vocabulary: TokenVocabulary) -> list[int]:
    """Return the best tokens that form a frame, one per row of `logits`; the number of rows must be even.

    Shape: logits (length, labels + 1 + subwords).
    """
    n_tokens = len(logits)
    if n_tokens < 2 or n_tokens % 2:
        raise OptionError(f"a frame has an even number of tokens, 2 or more, got {n_tokens}")
    scores = np.clip(np.nan_to_num(np.asarray(logits, np.float64), nan=-1e4), -1e4, 1e4)
    labels, close, pointers = np.split(scores, [vocabulary.close, vocabulary.first_pointer], axis=1)
    kinds = labels[:, ~vocabulary.is_slot], labels[:, vocabulary.is_slot], close, pointers  # in the order of `Token`
    kind_scores = np.stack([part.max(axis=1, initial=-np.inf) for part in kinds], axis=1)
    return _name_tokens(best_kinds(kind_scores), scores, vocabulary)


def decode_frame(log_p: npt.NDArray[np.floating], length_log_p: float, vocabulary: TokenVocabulary) -> Hypothesis:
    """Return the best frame of a non-autoregressive parser as a hypothesis.

    Shape: log_p (length, labels + 1 + subwords).
    """
    tokens = best_frame_tokens(log_p, vocabulary)
    skeleton, spans = vocabulary.read(tokens)
    if len(tokens) < len(log_p):  # an empty slot lacks its pointers, so the frame does not have the predicted length
        return Hypothesis.of_parts(skeleton, tuple(spans), -np.inf, (0.0,) * len(spans), passes=1)
    chosen = log_p[range(len(tokens)), tokens].astype(np.float64)
    span_log_p = pointer_log_p(tokens, chosen.tolist(), spans, vocabulary)
    skeleton_log_p = length_log_p + float(chosen.sum()) - sum(span_log_p)
    return Hypothesis.of_parts(skeleton, tuple(spans), skeleton_log_p, span_log_p, passes=1)


def best_kinds(scores: Floats) -> list[Token]:
    """Return the best sequence of kinds that is a frame. Shape: scores (length, 4), of each kind at each position.

    >>> loves_pointers = np.array([[0.0, 0.0, 0.0, 9.0]] * 6)
    >>> [kind.name for kind in best_kinds(loves_pointers)]
    ['INTENT', 'SLOT', 'POINT', 'POINT', 'CLOSE', 'CLOSE']
    """
    n_depths = len(scores) + 2
    sources = _sources(n_depths)
    gains = (scores[:, _TOKENS] + _COSTS)[:, :, np.newaxis]
    value = np.full(len(Inner) * n_depths + 1, -np.inf)  # by innermost node and depth; the last depth is never reached
    value[Inner.INTENT * n_depths + 1] = scores[0, Token.INTENT]
    best = value[:-1].reshape(len(Inner), n_depths)
    steps = []
    for gain in gains[1:]:
        reached = value[sources] + gain
        reached[:_TO_INTENT].max(axis=0, out=best[Inner.INTENT])
        best[Inner.INTENT + 1 :] = reached[_TO_INTENT:]
        steps.append(reached)
    return _trace(steps)


@lru_cache(64)
def _sources(n_depths: int) -> npt.NDArray[np.intp]:
    """Return the source of each move, by the depth that it leads to. Shape: (moves, depths)."""
    rows = []
    for move in _SORTED:
        depths = np.arange(n_depths) - move.deeper
        is_open = (depths >= 1) & (depths < n_depths - 1)  # no move starts at depth 0
        rows.append(np.where(is_open, move.before * n_depths + depths, len(Inner) * n_depths))
    return np.array(rows)


def _trace(steps: list[Floats]) -> list[Token]:
    depth, inner = 0, _DONE
    kinds: list[Token] = []
    for reached in reversed(steps):
        is_intent = inner is Inner.INTENT
        move = _SORTED[reached[:_TO_INTENT, depth].argmax() if is_intent else _TO_INTENT + inner - 1]
        kinds.append(move.token)
        depth, inner = depth - move.deeper, move.before
    return [Token.INTENT, *reversed(kinds)]


def _name_tokens(kinds: list[Token], scores: Floats, vocabulary: TokenVocabulary) -> list[int]:
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
