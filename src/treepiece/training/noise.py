"""Noise: utterances as people type them, with typos, fillers, and other punctuation, case, spacing and numbers.

Noise changes the words of a frame and nothing else. The skeleton stays, and each leaf covers exactly what has become of
its words: fillers are outside of all leaves, and a word is joined only to a neighbour in the same leaf, or to one
outside of all leaves if it is outside itself. No leaf loses all of its words.

A frame with a leaf that begins or ends inside a word is not changed, because a typo there could move the border.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np

from treepiece.trees.align import Span, cut_words
from treepiece.trees.frame import Frame


class NoiseKind(StrEnum):
    """The kinds of noise, each with what it makes of "What's the weather at 7?"."""

    SWAPPED_LETTERS = "swapped_letters"
    """What's the weahter at 7?"""
    NEARBY_KEY = "nearby_key"
    """What's the wearher at 7? The keyboard is QWERTY."""
    DROPPED_LETTER = "dropped_letter"
    """What's the weater at 7?"""
    DOUBLED_LETTER = "doubled_letter"
    """What's the weatther at 7?"""
    INSERTED_LETTER = "inserted_letter"
    """What's the weakther at 7?"""
    FILLER_BEFORE = "filler_before"
    """Hey, what's the weather at 7?"""
    FILLER_AFTER = "filler_after"
    """What's the weather at 7 please?"""
    FILLERS_AROUND = "fillers_around"
    """Um what's the weather at 7, thanks?"""
    APOSTROPHES = "apostrophes"
    """Whats the weather at 7?"""
    PUNCTUATION = "punctuation"
    """What's the weather at 7"""
    FINAL_MARK = "final_mark"
    """What's the weather at 7!"""
    LETTER_CASE = "letter_case"
    """what's the weather at 7?"""
    JOINED_WORDS = "joined_words"
    """What's theweather at 7?"""
    SPLIT_WORD = "split_word"
    """What's the wea ther at 7?"""
    NUMBERS = "numbers"
    """What's the weather at seven?"""


Noise = Callable[[Frame, np.random.Generator], Frame]
"""A function that returns a frame with noise, or the same frame if this noise cannot change it."""

NOISE_WEIGHTS: Mapping[NoiseKind, float] = MappingProxyType(dict.fromkeys(NoiseKind, 1.0))
"""The weights of the kinds by default: all are equally frequent, so that a third of the noise is typos."""

_SECOND = 0.3  # the share of noised frames with a second kind of noise
_SHORT = 0.1  # the share of typos in words of two or three letters
_LONG_WORD = 4


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


# "Now", "today" and "okay" at the end are missing, because annotators mostly count them to a leaf; "for me" is a slot
# of reminders.
_OPENINGS = _listed("please, hey, hi, hello, um, uh, hmm, oh, ok, okay, so, well")
_REQUESTS = _listed(
    "can you, could you, would you, can you please, could you please, please can you, i want you to, i need you to, "
    "i would like you to"
)
_CLOSINGS = _listed("please, pls, thanks, thank you, thanks a lot, please and thank you, if you can, if possible")
_VERBS = _listed(
    "add, alert, ask, begin, bring, call, cancel, change, check, clear, close, create, delete, display, edit, end, "
    "erase, find, get, give, go, list, make, message, modify, move, open, pause, play, pull, put, read, remind, "
    "remove, repeat, replay, reply, reset, respond, restart, resume, schedule, send, set, show, shuffle, shut, skip, "
    "snooze, start, stop, switch, take, tell, text, turn, update, view, wake"
)
"""The words that a request such as "can you" goes before: nobody types "can you what time is it"."""

_APOSTROPHES = str.maketrans("", "", "'’")
_MARKS = ".,?!:;"
_FINAL_MARKS = ".?!"
_KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NUMBER_WORDS = _listed(
    "zero, one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen, "
    "sixteen, seventeen, eighteen, nineteen, twenty, thirty, forty, fifty, sixty, seventy, eighty, ninety"
)
_NUMBERS = dict(zip(map(str, [*range(20), *range(20, 100, 10)]), _NUMBER_WORDS, strict=True))
_DIGITS = {word: number for number, word in _NUMBERS.items()}


class _Piece(NamedTuple):
    """A word, the blanks before it, the place of the word in the frame that it comes from, and its leaf."""

    gap: str
    word: str
    place: int
    leaf: int | None


_Pieces = Sequence[_Piece]
_Change = Callable[[_Pieces, np.random.Generator], _Pieces]
_Edit = Callable[[str, int, np.random.Generator], str]
_T = TypeVar("_T")


def make_noise(kind: NoiseKind) -> Noise:
    """Return the function that adds a kind of noise to a frame.

    >>> frame = Frame.from_brackets("[IN:GET_WEATHER weather [SL:DATE_TIME at 7 ] ? ]", "weather at 7?")
    >>> noised = make_noise(NoiseKind.FILLER_AFTER)(frame, np.random.default_rng(0))
    >>> noised.utterance, noised.leaves[0].text
    ('weather at 7, if you can?', 'at 7')
    >>> make_noise(NoiseKind.APOSTROPHES)(frame, np.random.default_rng(0)) is frame  # there is none
    True
    """

    def noise(frame: Frame, rng: np.random.Generator) -> Frame:
        return _assemble(frame, _try(kind, _pieces(frame), rng))

    return noise


def add_noise(frame: Frame, rng: np.random.Generator, weights: Mapping[NoiseKind, float] = NOISE_WEIGHTS) -> Frame:
    """Return a frame with one or two kinds of noise, drawn by their weights from those that can change it.

    >>> frame = Frame.from_brackets("[IN:CREATE_ALARM wake me [SL:DATE_TIME at seven ] ]")
    >>> for seed in range(2, 6):
    ...     noised = add_noise(frame, np.random.default_rng(seed))
    ...     print(noised.utterance, "|", noised.leaves[0].text)
    wake me at seevn | at seevn
    would you wake me at seven please and thank you | at seven
    wake me atseven | atseven
    wake me at syeven | at syeven
    """
    kinds = [kind for kind, weight in weights.items() if weight > 0]
    # The smallest of exponential variables with the weights as rates is each of them as often as its weight says.
    order = np.argsort(rng.exponential(size=len(kinds)) / [weights[kind] for kind in kinds])
    n_left = 2 if rng.random() < _SECOND else 1
    pieces: _Pieces | None = None
    given = _pieces(frame)
    for place in order.tolist():
        changed = _try(kinds[place], given if pieces is None else pieces, rng)
        if changed is not None:
            pieces, n_left = changed, n_left - 1
        if not n_left:
            break
    return _assemble(frame, pieces)


def _pieces(frame: Frame) -> _Pieces:
    """Return the words of a frame as the user typed them, split at blanks; none if a word has only blanks."""
    owners = {place: leaf for leaf, span in enumerate(frame.spans) for place in range(*span)}
    starts = [chars.start for chars in frame.offsets]
    text, before, pieces = frame.utterance, 0, []
    for start, end in cut_words(text, [place for chars in frame.offsets for place in chars]):
        place = bisect_right(starts, start) - 1
        pieces.append(_Piece(text[before:start], text[start:end], place, owners.get(place)))
        before = end
    return pieces if len({piece.place for piece in pieces}) == len(frame.words) else []


def _leaves(pieces: _Pieces) -> set[int]:
    return {piece.leaf for piece in pieces if piece.leaf is not None}


def _try(kind: NoiseKind, pieces: _Pieces, rng: np.random.Generator) -> _Pieces | None:
    """Return changed pieces, or None if there is nothing to change or a leaf would not keep its borders."""
    changed = _CHANGES[kind](pieces, rng) if pieces else pieces
    if changed == pieces or not changed:
        return None
    if _leaves(changed) != _leaves(pieces):
        return None
    return None if any(_is_blurred(*two) for two in pairwise(changed)) else changed


def _is_blurred(left: _Piece, right: _Piece) -> bool:
    """Return whether the border of a leaf is inside a word: subwords may cross it."""
    if right.gap or left.leaf == right.leaf:
        return False
    return left.word[-1].isalnum() == right.word[0].isalnum()


def _assemble(frame: Frame, pieces: _Pieces | None) -> Frame:
    if pieces is None:
        return frame
    tail = frame.utterance[len(frame.utterance.rstrip()) :]
    utterance = "".join([text for piece in pieces for text in (piece.gap, piece.word)]) + tail
    if utterance == frame.utterance:  # a second kind has undone the first
        return frame
    places = [piece.place for piece in pieces]
    spans = tuple(Span(bisect_left(places, start), bisect_left(places, end)) for start, end in frame.spans)
    return Frame(tuple(piece.word for piece in pieces), frame.skeleton, spans, utterance, frame.n_mixed)


def _choice(options: Sequence[_T], rng: np.random.Generator) -> _T:
    return options[int(rng.integers(len(options)))]


def _with_words(pieces: _Pieces, words: Iterable[str]) -> _Pieces:
    """Return the pieces with other words; those that get an empty word are left out."""
    kept: list[_Piece] = []
    gap = ""
    for piece, word in zip(pieces, words, strict=True):
        gap = piece.gap or gap
        if word:
            kept.append(piece._replace(gap=gap if kept else pieces[0].gap, word=word))
            gap = ""
    return kept


def _with_word(pieces: _Pieces, place: int, word: str) -> _Pieces:
    return [*pieces[:place], pieces[place]._replace(word=word), *pieces[place + 1 :]]


def _cased_like(char: str, model: str) -> str:
    return char.upper() if model.isupper() else char.lower()


# Typos


def _typo(edit: _Edit, can_edit: Callable[[str, int], bool]) -> _Change:
    """Return the change that edits a word at one of the places where it can be edited."""

    def change(pieces: _Pieces, rng: np.random.Generator) -> _Pieces:
        long: list[int] = []
        short: list[int] = []
        for place, piece in enumerate(pieces):
            n_letters = sum(map(str.isalpha, piece.word))
            if n_letters >= 2:
                (long if n_letters >= _LONG_WORD else short).append(place)
        words = short if short and (not long or rng.random() < _SHORT) else long
        if not words:
            return pieces
        place = _choice(words, rng)
        word = pieces[place].word
        letters = [letter for letter in range(len(word)) if word[letter].isalpha() and can_edit(word, letter)]
        return _with_word(pieces, place, edit(word, _choice(letters, rng), rng)) if letters else pieces

    return change


def _swap(word: str, letter: int, _: np.random.Generator) -> str:
    first, second = word[letter], word[letter + 1]
    return word[:letter] + _cased_like(second, first) + _cased_like(first, second) + word[letter + 2 :]


def _can_swap(word: str, letter: int) -> bool:
    first, second = word[letter], word[letter + 1 : letter + 2]
    return second.isalpha() and first.lower() != second.lower()


def _hit_nearby_key(word: str, letter: int, rng: np.random.Generator) -> str:
    key = _choice(_NEARBY_KEYS[word[letter].lower()], rng)
    return word[:letter] + _cased_like(key, word[letter]) + word[letter + 1 :]


def _drop_letter(word: str, letter: int, _: np.random.Generator) -> str:
    return word[:letter] + word[letter + 1 :]


def _double_letter(word: str, letter: int, _: np.random.Generator) -> str:
    return word[: letter + 1] + word[letter:]


def _insert_letter(word: str, letter: int, rng: np.random.Generator) -> str:
    new = _cased_like(_choice("abcdefghijklmnopqrstuvwxyz", rng), word[letter])
    place = letter + int(rng.integers(2))
    return word[:place] + new + word[place:]


def _nearby_keys() -> dict[str, str]:
    """Return the neighbours of each key: left and right, and the two above and below.

    >>> _nearby_keys()["s"], _nearby_keys()["p"]
    ('adwezx', 'ol')
    """
    keys = {}
    for row, letters in enumerate(_KEYBOARD):
        above = _KEYBOARD[row - 1] if row else ""
        below = _KEYBOARD[row + 1] if row + 1 < len(_KEYBOARD) else ""
        for column, key in enumerate(letters):
            left = max(0, column - 1)
            beside = letters[left : column + 2].replace(key, "")
            keys[key] = beside + above[column : column + 2] + below[left : column + 1]
    return keys


_NEARBY_KEYS = _nearby_keys()


# Fillers


def _begin_with_filler(pieces: _Pieces, rng: np.random.Generator) -> _Pieces:
    first = pieces[0]
    is_request = first.word.lower() in _VERBS and rng.random() < 0.5
    filler = _choice(_REQUESTS if is_request else _OPENINGS, rng).split()
    if first.word.lower() in filler:
        return pieces
    if first.word.istitle():
        filler[0] = filler[0].title()
        first = first._replace(word=first.word if first.leaf is not None or first.word == "I" else first.word.lower())
    added = [_Piece(" ", word, -1, None) for word in _like_all(filler, pieces)]
    added[0] = added[0]._replace(gap=first.gap)
    if not is_request and rng.random() < 0.5:
        added.append(_Piece("", ",", -1, None))
    return [*added, first._replace(gap=" "), *pieces[1:]]


def _end_with_filler(pieces: _Pieces, rng: np.random.Generator) -> _Pieces:
    end = len(pieces)
    while end > 1 and pieces[end - 1].leaf is None and not pieces[end - 1].word.strip(_FINAL_MARKS):
        end -= 1
    filler = _choice(_CLOSINGS, rng).split()
    if pieces[end - 1].word.lower() in filler:
        return pieces
    place = pieces[end].place if end < len(pieces) else pieces[end - 1].place + 1
    added = [_Piece(" ", word, place, None) for word in _like_all(filler, pieces)]
    comma = [_Piece("", ",", place, None)] if rng.random() < 0.3 else []
    return [*pieces[:end], *comma, *added, *pieces[end:]]


def _surround_with_fillers(pieces: _Pieces, rng: np.random.Generator) -> _Pieces:
    return _end_with_filler(_begin_with_filler(pieces, rng), rng)


def _like_all(filler: list[str], pieces: _Pieces) -> list[str]:
    """Return a filler in upper case if the user types in upper case."""
    return [word.upper() for word in filler] if "".join(piece.word for piece in pieces).isupper() else filler


# Punctuation and case


def _drop_apostrophes(pieces: _Pieces, _: np.random.Generator) -> _Pieces:
    return _with_words(pieces, [piece.word.translate(_APOSTROPHES) for piece in pieces])


def _drop_punctuation(pieces: _Pieces, _: np.random.Generator) -> _Pieces:
    words = [piece.word.strip(_MARKS) for piece in pieces]
    for place in range(1, len(pieces) - 1):
        mark, after = pieces[place], pieces[place + 1]
        if words[place] or mark.gap or after.gap:
            continue
        # Between two words without blanks. 8:30 becomes 830, but neither does 1.5 become 15 nor yes,no become yesno.
        is_number = pieces[place - 1].word[-1].isdigit() and after.word[0].isdigit()
        if not is_number or mark.word not in ":,":
            words[place] = mark.word
    return _with_words(pieces, words)


def _change_final_mark(pieces: _Pieces, rng: np.random.Generator) -> _Pieces:
    last = pieces[-1]
    if last.leaf is None and last.word in _FINAL_MARKS and len(pieces) > 1:
        others = ["", *_FINAL_MARKS.replace(last.word, "")]
        return _with_words(pieces, [*(piece.word for piece in pieces[:-1]), _choice(others, rng)])
    return [*pieces, _Piece("", _choice(_FINAL_MARKS, rng), last.place + 1, None)]


def _change_case(pieces: _Pieces, rng: np.random.Generator) -> _Pieces:
    words = [piece.word for piece in pieces]
    first = words[0][:1].upper() + words[0][1:]
    ways = [[word.lower() for word in words], [word.upper() for word in words], [first, *words[1:]]]
    ways = [way for way in ways if way != words]
    return _with_words(pieces, _choice(ways, rng)) if ways else pieces


# Spacing and numbers


def _join_words(pieces: _Pieces, rng: np.random.Generator) -> _Pieces:
    places = [place for place, two in enumerate(pairwise(pieces)) if _can_join(*two)]
    if not places:
        return pieces
    place = _choice(places, rng)
    joined = pieces[place]._replace(word=pieces[place].word + pieces[place + 1].word)
    return [*pieces[:place], joined, *pieces[place + 2 :]]


def _can_join(left: _Piece, right: _Piece) -> bool:
    """Return whether two words can run together; two numbers cannot, they would be another number."""
    if left.leaf != right.leaf or not right.gap:
        return False
    last, first = left.word[-1], right.word[0]
    return last.isalnum() and first.isalnum() and not (last.isdigit() and first.isdigit())


def _split_word(pieces: _Pieces, rng: np.random.Generator) -> _Pieces:
    places = [place for place, piece in enumerate(pieces) if len(piece.word) >= _LONG_WORD and piece.word.isalpha()]
    if not places:
        return pieces
    place = _choice(places, rng)
    piece = pieces[place]
    cut = int(rng.integers(2, len(piece.word) - 1))
    parts = [piece._replace(word=piece.word[:cut]), piece._replace(gap=" ", word=piece.word[cut:])]
    return [*pieces[:place], *parts, *pieces[place + 1 :]]


def _rewrite_number(pieces: _Pieces, rng: np.random.Generator) -> _Pieces:
    places = [place for place in range(len(pieces)) if _is_number(pieces, place)]
    if not places:
        return pieces
    place = _choice(places, rng)
    word = pieces[place].word
    return _with_word(pieces, place, _NUMBERS.get(word) or _DIGITS[word.lower()])


def _is_number(pieces: _Pieces, place: int) -> bool:
    """Return whether a word is a number of its own, not a part as in "8:30" or "twenty five", nor a pronoun."""
    piece, following = pieces[place], [*pieces[place + 1 : place + 3], None, None]
    word, after = piece.word.lower(), following[0]
    if word not in _NUMBERS and word not in _DIGITS:
        return False
    if place and (not piece.gap or pieces[place - 1].word.lower() in _DIGITS):
        return False
    if after is None:
        return word != "one"
    if not after.gap:  # a mark may end the sentence, or be the first of "7:30"
        return word != "one" and after.word in ".,?!" and (following[1] is None or bool(following[1].gap))
    return after.word.lower() not in _DIGITS and (
        word != "one" or (piece.leaf is not None and piece.leaf == after.leaf)
    )


_CHANGES: Mapping[NoiseKind, _Change] = {
    NoiseKind.SWAPPED_LETTERS: _typo(_swap, _can_swap),
    NoiseKind.NEARBY_KEY: _typo(_hit_nearby_key, lambda word, letter: word[letter].lower() in _NEARBY_KEYS),
    NoiseKind.DROPPED_LETTER: _typo(_drop_letter, lambda word, letter: len(word) > 1),
    NoiseKind.DOUBLED_LETTER: _typo(_double_letter, lambda word, letter: True),
    NoiseKind.INSERTED_LETTER: _typo(_insert_letter, lambda word, letter: True),
    NoiseKind.FILLER_BEFORE: _begin_with_filler,
    NoiseKind.FILLER_AFTER: _end_with_filler,
    NoiseKind.FILLERS_AROUND: _surround_with_fillers,
    NoiseKind.APOSTROPHES: _drop_apostrophes,
    NoiseKind.PUNCTUATION: _drop_punctuation,
    NoiseKind.FINAL_MARK: _change_final_mark,
    NoiseKind.LETTER_CASE: _change_case,
    NoiseKind.JOINED_WORDS: _join_words,
    NoiseKind.SPLIT_WORD: _split_word,
    NoiseKind.NUMBERS: _rewrite_number,
}
