"""A toy grammar that generates rows in the style of TOP, for tests, demos and a first training run.

The requests are invented. Everything is lower case, each label follows from the words around it, and no tree is deeper
than six nodes. `toy.ini` holds the phrases of the grammar. A phrase has alternatives, one per line or separated by `|`.
In an alternative

- `3: ` in front is its weight (1 by default),
- `{name}` stands for an alternative of another phrase; `{name?}` is left out half of the time,
- `{frame:name}` stands for an alternative of `frame` in which `{}` is `{name}`,
- `~` in front of a word attaches it to the word before: `tonight ~?` is typed `tonight?` and parsed as two words,
- everything else is bracket text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from configparser import ConfigParser
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from itertools import accumulate
from random import Random
from typing import NamedTuple

from treepiece.checks import whole_number
from treepiece.errors import DataError
from treepiece.trees.frame import Frame

_WEIGHT = re.compile(r"(\d+): ")
_REFERENCE = re.compile(r"\{([^{}?]+)(\??)\}")
_HOLE = "{}"
_ATTACHED = "~"
_START = "domain"


class Dice(Random):
    """A random source that gives the same picks on every platform and Python version.

    Python guarantees this only for `random()`, so a pick uses nothing else.
    """

    def pick(self, limits: tuple[int, ...]) -> int:
        """Return an index into `limits`, the running totals of the weights.

        >>> dice = Dice(0)
        >>> [dice.pick((1, 2, 5)) for _ in range(8)]
        [2, 2, 2, 1, 2, 2, 2, 1]
        """
        return bisect_right(limits, int(self.random() * limits[-1]))


class Reference(NamedTuple):
    """A phrase named inside an alternative; an optional one is left out half of the time."""

    name: str
    optional: bool


Token = str | Reference


class Phrase(NamedTuple):
    """The alternatives of a phrase, each a sequence of tokens, and the running totals of their weights."""

    alternatives: tuple[tuple[Token, ...], ...]
    limits: tuple[int, ...]


class ToyGrammar:
    """Phrases that refer to each other, checked: every reference has a phrase and there are no cycles.

    >>> grammar = ToyGrammar({"ask": "will it {rain} ~?", "rain": "[SL:WEATHER rain ]"})
    >>> grammar.expand("ask", Dice(0))
    ['will', 'it', '[SL:WEATHER', 'rain', ']', '~?']
    >>> ToyGrammar({"ask": "{polite:do}", "polite": "please {}", "do": "sing"}).expand("ask", Dice(0))
    ['please', 'sing']
    """

    def __init__(self, phrases: Mapping[str, str]) -> None:
        self.phrases: dict[str, Phrase] = {}
        # A phrase that is only a frame for others has a hole and cannot be expanded on its own.
        waiting = [name for name, text in phrases.items() if _HOLE not in text.split()]
        users = dict.fromkeys(waiting, "the grammar")
        while waiting:
            name = waiting.pop()
            phrase = self.phrases[name] = read_phrase(_filled(name, phrases, users[name]))
            for reference in _references(phrase):
                if reference not in users:
                    users[reference] = f"phrase {name!r}"
                    waiting.append(reference)
        try:
            TopologicalSorter({name: _references(phrase) for name, phrase in self.phrases.items()}).prepare()
        except CycleError as error:
            raise DataError(f"phrases refer to each other in a cycle: {' > '.join(error.args[1])}") from None

    def expand(self, start: str, dice: Dice) -> list[str]:
        """Return the tokens of one random alternative of the phrase `start`, its references replaced by theirs."""
        tokens: list[str] = []
        phrase = self.phrases[start]
        for part in phrase.alternatives[dice.pick(phrase.limits)]:
            if isinstance(part, str):
                tokens.append(part)
            elif not part.optional or dice.random() < 0.5:
                tokens += self.expand(part.name, dice)
        return tokens


def read_phrase(text: str) -> Phrase:
    """Return the phrase that `text` describes.

    >>> read_phrase("2: call {name} | hang up {now?}")  # doctest: +NORMALIZE_WHITESPACE
    Phrase(alternatives=(('call', Reference(name='name', optional=False)),
                         ('hang', 'up', Reference(name='now', optional=True))),
           limits=(2, 3))
    """
    alternatives: list[tuple[Token, ...]] = []
    weights: list[int] = []
    for line in text.replace("|", "\n").split("\n"):
        line = line.strip()
        if line:
            weight = _WEIGHT.match(line)
            weights.append(int(weight[1]) if weight else 1)
            alternatives.append(tuple(_read_token(token) for token in line[weight.end() if weight else 0 :].split()))
    return Phrase(tuple(alternatives), tuple(accumulate(weights)))


def _read_token(token: str) -> Token:
    reference = _REFERENCE.fullmatch(token)
    return Reference(reference[1], bool(reference[2])) if reference else token


def _references(phrase: Phrase) -> set[str]:
    return {part.name for parts in phrase.alternatives for part in parts if isinstance(part, Reference)}


def _filled(name: str, phrases: Mapping[str, str], user: str) -> str:
    """Return the text of a phrase, for `frame:name` with the hole of the frame filled."""
    frame, _, content = name.partition(":")
    if frame not in phrases:
        raise DataError(f"{user} refers to the phrase {frame!r}, which does not exist")
    return phrases[frame].replace(_HOLE, f"{{{content}}}") if content else phrases[frame]


def parse_of(tokens: Iterable[str]) -> str:
    """Return the bracket text of expanded tokens.

    >>> parse_of(["[IN:GET_WEATHER", "rain", "~?", "]"])
    '[IN:GET_WEATHER rain ? ]'
    """
    return " ".join(token.removeprefix(_ATTACHED) for token in tokens)


def utterance_of(tokens: Iterable[str]) -> str:
    """Return what a user would type: the words of expanded tokens, punctuation attached.

    >>> utterance_of(["[IN:GET_WEATHER", "rain", "~?", "]"])
    'rain?'
    """
    words = " ".join(token for token in tokens if token != "]" and not token.startswith("["))
    return words.replace(" " + _ATTACHED, "")


def toy_domains() -> tuple[str, ...]:
    """Return the names of the domains in alphabetical order.

    >>> toy_domains()
    ('home', 'messaging', 'music', 'navigation', 'reminder', 'timer', 'weather')
    """
    return tuple(str(domain) for (domain,) in toy_grammar().phrases[_START].alternatives)


def toy_rows(n: int, seed: int = 0) -> Iterator[tuple[str, str, str]]:
    """Yield `n` rows of domain, utterance and parse; with the same seed, more rows begin with the same ones.

    >>> list(toy_rows(1, seed=7))
    [('music', 'could you please play tonight?', '[IN:PLAY_MUSIC could you please play [SL:SONG tonight ] ? ]')]
    """
    return _rows(whole_number("n", n, 0), whole_number("seed", seed, 0))


def _rows(n: int, seed: int) -> Iterator[tuple[str, str, str]]:
    grammar, dice = toy_grammar(), Dice(seed)
    for _ in range(n):
        (domain,) = grammar.expand(_START, dice)
        tokens = grammar.expand(domain, dice)
        yield domain, utterance_of(tokens), parse_of(tokens)


def toy_frames(n: int, seed: int = 0) -> Iterator[Frame]:
    """Yield the frames of `toy_rows`.

    >>> next(toy_frames(1, seed=4)).skeleton
    Node('[IN:SEND_MESSAGE [SL:RECIPIENT [IN:GET_CONTACT [SL:TYPE_RELATION ] ] ] [SL:CONTENT ] ]')
    """
    return (Frame.from_brackets(parse, utterance) for _, utterance, parse in toy_rows(n, seed))


def toy_phrases() -> dict[str, str]:
    """Return the text of each phrase; a name that is defined twice is an error."""
    parser = ConfigParser(delimiters=(":",), comment_prefixes=("#",), interpolation=None, empty_lines_in_values=False)
    parser.read_string(files("treepiece.data").joinpath("toy.ini").read_text(encoding="utf-8"))
    return dict(parser["phrases"])


@cache
def toy_grammar() -> ToyGrammar:
    """Return the grammar of all domains, loaded once."""
    return ToyGrammar(toy_phrases())
