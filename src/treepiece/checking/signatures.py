"""Signatures of rows: what remains of a row that is not kept, to recognise its utterance and its parse again.

Two utterances count as the same if they have the same words, whatever their case and punctuation. They are near
duplicates if they have the same words after at most one word is left out of each. That covers a word that is added,
dropped, replaced or moved. As in SymSpell's dictionaries, it needs no comparison of pairs: an utterance has one
signature for all of its words, and one for each way to leave out a word, and near duplicates are those that share a
signature.

    wake me at 8      wake me at 8, me at 8, wake at 8, wake me 8, wake me at
    wake me at nine   wake me at nine, me at nine, wake at nine, wake me nine, wake me at     shared: wake me at

An utterance of n words has n + 1 signatures of 8 bytes each. MinHash would need dozens, and estimates the overlap of
sets of words, which says little about requests of five words. Nothing is estimated here: apart from collisions of
64-bit hashes, two utterances share a signature if and only if they are near duplicates.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Sequence
from hashlib import blake2b

from treepiece.data.fingerprints import skeleton_digest
from treepiece.trees.frame import Frame

_FEWEST = 3
"""How many words remain at least when one is left out: unrelated requests share shorter phrases, such as "set an"."""
_MOST = 64
"""Longer utterances have a signature for all of their words only."""
_SLOTS = 1 << 10
_NO_WORD = re.compile(r"[^\w\s]")


def normal_words(text: str) -> list[str]:
    """Return the words of a text without case and punctuation; symbols, such as a currency or an emoji, are kept.

    >>> normal_words("What's on,  at 8 P.M.?"), normal_words("?!")
    (['what', 's', 'on', 'at', '8', 'p', 'm'], ['?!'])
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    return _NO_WORD.sub(_blank, plain).split() or plain.split()


def _blank(found: re.Match[str]) -> str:
    """Return a blank for punctuation; a vowel sign, as in Hindi, is a part of its word."""
    return " " if unicodedata.category(found[0])[0] in "PC" else found[0]


def signature(words: Sequence[str]) -> int:
    """Return the signature of words: a hash of 64 bits, never 0."""
    text = " ".join(words).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest()) or 1


def near_signatures(words: Sequence[str]) -> list[int]:
    """Return the signatures by which near duplicates are found, the one of all words first.

    >>> shared = {*near_signatures("wake me at 8".split())} & {*near_signatures("wake me at nine".split())}
    >>> shared == {signature(["wake", "me", "at"])}
    True
    """
    found = [signature(words)]
    if _FEWEST < len(words) <= _MOST:
        found += (signature([*words[:place], *words[place + 1 :]]) for place in range(len(words)))
    return list(dict.fromkeys(found))


def parse_signature(frame: Frame) -> int:
    """Return a hash of 31 bits of a parse: its skeleton, and where each of its spans is among the normal words.

    Case and punctuation do not matter, as they do not for utterances:

    >>> first = Frame.from_brackets("[IN:A wake me [SL:B at 8 ] . ]")
    >>> parse_signature(first) == parse_signature(Frame.from_brackets("[IN:A Wake me [SL:B at 8 . ] ]"))
    True
    >>> parse_signature(first) == parse_signature(Frame.from_brackets("[IN:A wake me at [SL:B 8 ] ]"))
    False
    """
    parts = [skeleton_digest(frame.skeleton)]
    for leaf in frame.leaves:
        before = normal_words(frame.utterance[: leaf.chars.start])
        parts.append(f"{len(before)}:{' '.join(normal_words(leaf.text))}")
    text = "\n".join(parts).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=4).digest()) >> 1


class SignatureTable:
    """Signatures with a number of 64 bits each, in two arrays: 21 to 43 bytes per signature, a quarter of a `dict`.

    There are at most `limit` signatures. Once the table is full, new ones are counted in `n_dropped` and not kept.

    >>> table = SignatureTable(limit=1)
    >>> table.put(7, 70); table.put(8, 80); table.put(7, 71)
    >>> table.get(7), table.get(8), len(table), table.n_dropped
    (71, None, 1, 1)
    """

    def __init__(self, limit: int) -> None:
        self.n_dropped = 0
        self._limit = limit
        self._size = 0
        self._mask = _SLOTS - 1
        self._keys, self._values = _zeros(_SLOTS), _zeros(_SLOTS)

    def __len__(self) -> int:
        return self._size

    def get(self, key: int) -> int | None:
        """Return the number of a signature; None if it is not in the table."""
        slot = self._find(key)
        return self._values[slot] if self._keys[slot] else None

    def put(self, key: int, value: int) -> None:
        """Set the number of a signature."""
        slot = self._find(key)
        if not self._keys[slot]:
            if self._size >= self._limit:
                self.n_dropped += 1
                return
            self._keys[slot] = key
            self._size += 1
        self._values[slot] = value
        if 4 * self._size > 3 * len(self._keys):
            self._grow()

    def _find(self, key: int) -> int:
        """Return the slot of a signature, or the free slot where it belongs (open addressing, linear probing)."""
        slot, keys = key & self._mask, self._keys
        while keys[slot] and keys[slot] != key:
            slot = (slot + 1) & self._mask
        return slot

    def _grow(self) -> None:
        before = self._keys, self._values
        n_slots = 2 * len(self._keys)
        self._mask = n_slots - 1
        self._keys, self._values = _zeros(n_slots), _zeros(n_slots)
        for key, value in zip(*before, strict=True):
            if key:
                slot = self._find(key)
                self._keys[slot], self._values[slot] = key, value


def _zeros(n: int) -> array[int]:
    return array("Q", bytes(8)) * n
