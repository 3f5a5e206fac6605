"""Spelling correction: an unknown word is replaced by the most similar word of the training rows.

A parser learns the words of its training rows, and its encoder was trained on correct text. One swapped letter turns
"alarm" into subwords that neither of them has ever seen together. So unknown words are corrected before the text is
split into subwords:

    set an alrm for 7   ->   set an alarm for 7

A word is unknown if the training rows do not have it twice, and if the encoder has no subword for all of it: "malta" is
left alone even if nobody ever asked for it. A word that the training rows have once is corrected only to a frequent
one. What remains are typing errors and rare names. A name that is corrected to another name does little harm, because
what a user reads are always the characters that were typed: the offsets of the subwords refer to these (`realign`).
Text without unknown words is looked up in a table and costs nothing else.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from treepiece.errors import BundleError, TextError
from treepiece.text import Subwords, SubwordTokenizer
from treepiece.trees.align import Span

MAX_WORDS = 100_000
"""The most frequent words of the training rows that a dictionary keeps: a lookup takes time in proportion."""
MIN_COUNT = 2
"""A word that the training rows have only once may be a typing error itself."""
OFTEN = 100
"""Such a word is corrected only to a word that is so many times as frequent."""
LETTERS = range(4, 33)
"""The lengths of words that are corrected. Most words of three letters are a letter away from another."""
TWO_EDITS = 7
"""Words of this length or more may have two errors, shorter words one."""
MAX_UNKNOWN = 32
"""A text with more unknown words is in another language, or no language: it is left alone."""
LEAST_SHARE = 1e-7
"""The least product of the shares that two words have of all words, for a word to be read as both of them."""
_CACHED = 1 << 12
_WORD = re.compile(r"[^\W\d_]+")


class Word(NamedTuple):
    """A word of a text in lower case, and where it is."""

    start: int
    end: int
    lower: str


class Correction(NamedTuple):
    """The characters of a text from `start` up to `end`, a word or what was meant as one, and what was read instead."""

    start: int
    end: int
    text: str
    read: str


class Dictionary:
    """The words of training rows, in lower case, with how often each occurs.

    >>> Dictionary.of_texts(["Wake me at 8", "wake Ana"]).counts
    {'wake': 2, 'me': 1, 'at': 1, 'ana': 1}
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = dict(sorted(counts.items(), key=lambda item: -item[1])[:MAX_WORDS])

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> Dictionary:
        """Return the dictionary of some texts."""
        return cls(Counter(word for text in texts for word in _WORD.findall(text.lower())))

    def __or__(self, other: Dictionary) -> Dictionary:
        """Return the dictionary of the texts of both."""
        return Dictionary(Counter(self.counts) + Counter(other.counts))

    def to_bytes(self) -> bytes:
        """Return the file that `from_bytes` reads: a JSON object, the most frequent word first."""
        return json.dumps(self.counts, ensure_ascii=False, indent=0, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Dictionary:
        """Return a dictionary from its file; raise if it is none."""
        try:
            counts = json.loads(data)
        except (ValueError, RecursionError):
            raise BundleError("not JSON") from None
        if not isinstance(counts, dict):
            raise BundleError("expected words and how often each occurs, as a JSON object")
        if len(counts) > MAX_WORDS:
            raise BundleError(f"{len(counts):,} words are too many: a dictionary has {MAX_WORDS:,} at most")
        for word, count in counts.items():
            if type(count) is not int or count < 1:
                raise BundleError(f"{word!r:.40}: expected how often the word occurs, 1 or more, found {count!r:.40}")
        return cls(counts)


class SpellingCorrector:
    """Corrects the words of texts that are neither in a dictionary nor known to the encoder. Threads may share it.

    >>> corrector = SpellingCorrector(Dictionary({"alarm": 9, "tomorrow": 5}), lambda word: word == "alarms")
    >>> [(one.text, one.read) for one in corrector.corrections("Alrm for tommorow")]
    [('Alrm', 'Alarm'), ('tommorow', 'tomorrow')]
    >>> [(one.text, one.read) for one in corrector.corrections("alarms 24 to morrow alarmtomorrow")]
    [('to morrow', 'tomorrow'), ('alarmtomorrow', 'alarm tomorrow')]
    """

    def __init__(self, dictionary: Dictionary, is_known: Callable[[str], bool]) -> None:
        self._counts = {word: count for word, count in dictionary.counts.items() if count >= MIN_COUNT}
        self._once = dictionary.counts.keys() - self._counts.keys()
        self._is_known = is_known
        self.nearest = lru_cache(_CACHED)(self._nearest)
        self.is_unknown = lru_cache(_CACHED)(self._is_unknown)

    def corrections(self, text: str) -> tuple[Correction, ...]:
        """Return the corrections of a text, from left to right."""
        words = [Word(*match.span(), match.group().lower()) for match in _WORD.finditer(text)]
        new = (place for place, word in enumerate(words) if word.lower not in self._counts)
        unknown = list(islice((place for place in new if self.is_unknown(words[place].lower)), MAX_UNKNOWN + 1))
        if len(unknown) > MAX_UNKNOWN:
            return ()
        found: list[Correction] = []
        for place in unknown:
            done = found[-1].end if found else 0
            if words[place].start < done:
                continue  # it is a part of the correction before
            nearby = [word for word in words[max(0, place - 1) : place + 2] if word.start >= done]
            start, end, read = self._joined(text, nearby) or self._alone(words[place])
            if read:
                found.append(Correction(start, end, text[start:end], _with_case_of(text[start:end], read)))
        return tuple(found)

    def _alone(self, word: Word) -> Word:
        """Return where an unknown word is, and what to read instead; an empty word if it is left alone."""
        return word._replace(lower=self.nearest(word.lower) or "")

    def _joined(self, text: str, nearby: Sequence[Word]) -> Word | None:
        """Return the frequent word that an unknown word and a neighbour make without the blank between them."""
        for one, other in pairwise(nearby):
            joined = one.lower + other.lower
            if text[one.end : other.start] == " " and joined in self._counts:
                return Word(one.start, other.end, joined)
        return None

    def _is_unknown(self, word: str) -> bool:
        return _has_case(word) and not self._is_known(word)

    def _nearest(self, word: str) -> str | None:
        """Return what to read instead of an unknown word in lower case; None if the word is left alone.

        The distance is that of optimal string alignment: letters inserted, dropped, replaced, or swapped with a
        neighbour. Of equally near words the most frequent is read. A word that is near to none may be two words.
        """
        if len(word) not in LETTERS:
            return None
        read = self._similar(word)
        if read and word in self._once and min(self._counts[part] for part in read.split()) < OFTEN:
            return None
        return read

    def _similar(self, word: str) -> str | None:
        """Return the most similar word of the training rows, or two words; None if there is none."""
        # Only where there is an unknown word: most texts have none.
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        most = 2 if len(word) >= TWO_EDITS else 1
        near = process.extract(word, self._frequent, scorer=OSA.distance, score_cutoff=most, limit=None)
        return min(near, key=lambda one: (one[1], one[2]))[0] if near else self._split(word)

    def _split(self, word: str) -> str | None:
        """Return the two words that were run together, the most frequent pair.

        Both must be so frequent that they are expected to meet: "alarmfor" is two words, the name "vimal" is not.
        """
        pairs = [(word[:cut], word[cut:]) for cut in range(2, len(word) - 1)]
        shares = [math.prod(self._counts.get(part, 0) / self._n_words for part in pair) for pair in pairs]
        best = max(shares, default=0.0)
        return " ".join(pairs[shares.index(best)]) if best >= LEAST_SHARE else None

    @cached_property
    def _n_words(self) -> int:
        return max(1, sum(self._counts.values()))

    @cached_property
    def _frequent(self) -> list[str]:
        """The words that are read instead of others, the most frequent first."""
        return [word for word in self._counts if len(word) >= LETTERS[0] - 1]


def _has_case(word: str) -> bool:
    """Return whether all letters of a word in lower case are of a script with upper and lower case.

    Scripts without case are left alone: some of them do not put blanks between words.
    """
    return all(char.islower() for char in word)


def _with_case_of(word: str, read: str) -> str:
    """Return a word in lower case as the user would have typed it.

    >>> _with_case_of("Alrm", "alarm"), _with_case_of("ALRM", "alarm")
    ('Alarm', 'ALARM')
    """
    cased = read.upper() if word.isupper() else read.capitalize() if word[0].isupper() else read
    return cased if len(cased) == len(read) else read


def corrected(text: str, corrections: Sequence[Correction]) -> str:
    """Return a text with its corrections.

    >>> corrected("set an alrm", [Correction(7, 11, "alrm", "alarm")])
    'set an alarm'
    """
    return "".join(_pieces(text, corrections))


def _pieces(text: str, corrections: Sequence[Correction]) -> Iterator[str]:
    end = 0
    for one in corrections:
        yield text[end : one.start]
        yield one.read
        end = one.end
    yield text[end:]


def realign(offsets: Sequence[Span], corrections: Sequence[Correction]) -> tuple[Span, ...] | None:
    """Return offsets in a corrected text as offsets in the text as it was typed.

    None if a subword has no letter of what was typed: a leaf that is this subword would have no words.

    >>> realign([Span(0, 3), Span(4, 6), Span(6, 9)], [Correction(4, 8, "alrm", "alarm")])  # set al ##arm
    (Span(start=0, end=3), Span(start=4, end=6), Span(start=6, end=8))
    """
    begins: list[int] = []  # of the corrections in the corrected text
    places: list[tuple[int, ...]] = []
    shift = 0
    for one in corrections:
        begins.append(one.start + shift)
        places.append(typed_places(one))
        shift += len(one.read) - len(one.text)

    def typed(place: int) -> int:
        index = bisect_right(begins, place) - 1
        if index < 0:
            return place
        inside, known = place - begins[index], places[index]
        return known[inside] if inside < len(known) else known[-1] + inside - len(known) + 1

    found = tuple(Span(typed(start), typed(end)) for start, end in offsets)
    is_lost = any(one.start == one.end and start < end for one, (start, end) in zip(found, offsets, strict=True))
    return None if is_lost else found


def typed_places(correction: Correction) -> tuple[int, ...]:
    """Return for each place between the letters of the word that was read the place in the text as typed.

    Letters that both words have stay together.

    >>> typed_places(Correction(4, 8, "alrm", "alarm"))  # |a|l|a|r|m| -> |a|l||r|m|
    (4, 5, 6, 6, 7, 8)
    """
    from rapidfuzz.distance import Levenshtein

    places: list[int] = []
    for edit in Levenshtein.opcodes(correction.text.lower(), correction.read.lower()):
        for place in range(edit.dest_end - edit.dest_start):
            places.append(correction.start + min(edit.src_start + place, edit.src_end))
    return (*places, correction.end)


class TokenizedText(NamedTuple):
    """The subwords of a text, with offsets into the text as typed, and the corrections of its spelling."""

    subwords: Subwords
    corrections: tuple[Correction, ...] = ()


class TextTokenizer:
    """Splits texts into subwords, after correcting their spelling if there is a dictionary."""

    def __init__(self, subwords: SubwordTokenizer, dictionary: Dictionary | None = None) -> None:
        self.subwords = subwords
        self.corrector = None if dictionary is None else SpellingCorrector(dictionary, subwords.has_word)

    def try_batch(self, texts: Sequence[str]) -> list[TokenizedText | TextError]:
        """Return the subwords and the corrections of each text, or the error for one that is too long."""
        if self.corrector is None:
            return [one if isinstance(one, TextError) else TokenizedText(one) for one in self.subwords.try_batch(texts)]
        corrections = [self.corrector.corrections(text) for text in texts]
        found = self.subwords.try_batch(list(map(corrected, texts, corrections)))
        return list(map(self._as_typed, texts, corrections, found))

    def _as_typed(
        self, text: str, corrections: tuple[Correction, ...], found: Subwords | TextError
    ) -> TokenizedText | TextError:
        """Return the result for a text; if the offsets cannot be realigned, the text is not corrected."""
        if corrections:
            offsets = None if isinstance(found, TextError) else realign(found.offsets, corrections)
            if isinstance(found, Subwords) and offsets is not None:
                return TokenizedText(Subwords(found.ids, offsets), corrections)
            (found,) = self.subwords.try_batch([text])
        return found if isinstance(found, TextError) else TokenizedText(found)
