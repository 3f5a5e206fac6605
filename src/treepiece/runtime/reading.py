"""Texts as the runtime reads them."""

from __future__ import annotations

from collections.abc import Sequence

from treepiece.errors import OptionError, TextError
from treepiece.text import Subwords, SubwordTokenizer

MOST_CHARACTERS = 100_000
"""A longer text is refused before it is cut into subwords: no encoder takes so many."""


def read_texts(subwords: SubwordTokenizer, texts: Sequence[str]) -> list[Subwords | TextError]:
    """Return the subwords of each text, or why it cannot be read."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise OptionError(f"text {number} must be a str, got {type(text).__name__}")
    # Texts that are far too long are put aside, so that they cost nothing.
    found = subwords.try_batch([text if len(text) <= MOST_CHARACTERS else "" for text in texts])
    return [_check(text, subwords.longest, one) for text, one in zip(texts, found, strict=True)]


def _check(text: str, longest: int, found: Subwords | TextError) -> Subwords | TextError:
    if len(text) > MOST_CHARACTERS:
        return TextError(
            f"a text of {len(text):,} characters is too long: the encoder takes {longest} subwords, "
            f"which are about as many words; it begins {text[:40]!r}"
        )
    if isinstance(found, Subwords) and not found.offsets:
        what = "is empty" if not text else "has nothing in it that can be read"
        return TextError(f"the text {what}, got {text[:40]!r}: give an utterance of one word or more")
    return found
