"""Rows and frames from the toy grammar."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import accumulate

from treepiece.data.toy.domains import DOMAIN_WEIGHTS, PHRASES
from treepiece.data.toy.grammar import Dice, Grammar, parse_of, utterance_of
from treepiece.options import whole_number
from treepiece.trees.frame import Frame


def toy_domains() -> tuple[str, ...]:
    """Return the names of the domains in alphabetical order.

    >>> toy_domains()
    ('home', 'messaging', 'music', 'navigation', 'reminder', 'timer', 'weather')
    """
    return tuple(DOMAIN_WEIGHTS)


def toy_rows(n: int, seed: int = 0) -> Iterator[tuple[str, str, str]]:
    """Yield `n` rows of domain, utterance and parse; more rows of the same seed begin with the same ones.

    >>> list(toy_rows(1, seed=7))
    [('music', 'could you please play tonight?', '[IN:PLAY_MUSIC could you please play [SL:SONG tonight ] ? ]')]
    """
    return _rows(whole_number("n", n, 0), whole_number("seed", seed, 0))


def _rows(n: int, seed: int) -> Iterator[tuple[str, str, str]]:
    grammar, dice = toy_grammar(), Dice(seed)
    domains = toy_domains()
    limits = tuple(accumulate(DOMAIN_WEIGHTS.values()))
    for _ in range(n):
        domain = domains[dice.pick(limits)]
        tokens = grammar.expand(domain, dice)
        yield domain, utterance_of(tokens), parse_of(tokens)


def toy_frames(n: int, seed: int = 0) -> Iterator[Frame]:
    """Yield the frames of `toy_rows`.

    >>> next(toy_frames(1, seed=4)).skeleton
    Node('[IN:SEND_MESSAGE [SL:RECIPIENT [IN:GET_CONTACT [SL:TYPE_RELATION ] ] ] [SL:CONTENT ] ]')
    """
    return (Frame.from_brackets(parse, utterance) for _, utterance, parse in toy_rows(n, seed))


@cache
def toy_grammar() -> Grammar:
    """Return the grammar of all domains, read once."""
    return Grammar(PHRASES)
