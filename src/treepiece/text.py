"""Subword tokenization of utterances: ids for the encoder, and the characters of each subword.

Models point at subwords, frames at words, and users read characters. Training and inference both tokenize the utterance
as typed; character offsets convert between the three (see `treepiece.trees.align`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Encoding, Tokenizer

from treepiece.errors import TextError
from treepiece.trees.align import Span, covered, covering

_BLANKS = "\u0120\u2581"
"""What vocabularies write for a blank before a subword: those of byte-level BPE, and of SentencePiece."""


@dataclass(frozen=True)
class Subwords:
    """The ids of an utterance, special tokens included, and the characters of each subword, special tokens excluded."""

    ids: tuple[int, ...]
    offsets: tuple[Span, ...]

    def covering(self, chars: Span) -> Span:
        """Return the subwords that a range of characters overlaps; an empty range if there are none."""
        return covering(self.offsets, chars)

    def chars(self, subwords: Span) -> Span:
        """Return the characters of a range of subwords."""
        return covered(self.offsets, subwords, self.offsets[-1].end if self.offsets else 0)


class SubwordTokenizer:
    """Splits utterances into subwords; `text` is the contents of a `tokenizer.json` of Hugging Face.

    `max_length` is the encoder's maximum number of subwords, special tokens included, and `n_ids` the number of ids
    that it knows.
    """

    def __init__(self, text: str, *, max_length: int, n_ids: int) -> None:
        try:
            self._tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # the library raises no narrower type
            raise TextError(f"the subword tokenizer cannot be read: {error}") from None
        self.text = text
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._check_special_tokens()
        self.max_length = max_length
        largest = max(self._tokenizer.get_vocab().values())
        if largest >= n_ids:
            raise TextError(
                f"the subword tokenizer has the id {largest}, but the encoder knows {n_ids} subwords: "
                "they do not belong together"
            )

    def _check_special_tokens(self) -> None:
        """Raise unless an utterance gets one special token before it and one after it, as the models expect."""
        mask = self._tokenizer.encode("a").special_tokens_mask
        if mask[:1] != [1] or mask[-1:] != [1] or sum(mask) != 2:
            raise TextError(
                "the subword tokenizer must put one special token before an utterance and one after it, as those of "
                f"BERT and RoBERTa do; the special tokens mask of this one is {mask}"
            )

    def has_word(self, word: str) -> bool:
        """Return whether a word in lower case is a single subword, as it is written here or with a capital letter."""
        return any(self._is_subword(form) for form in (word, word.capitalize()))

    def _is_subword(self, word: str) -> bool:
        # Some vocabularies have one subword for a word after a blank, and another for the beginning of a text.
        tokens = self._tokenizer.encode(f" {word}", add_special_tokens=False).tokens
        return len(tokens) == 1 and tokens[0].lstrip(_BLANKS) == word

    def encode_batch(self, utterances: Sequence[str]) -> list[Subwords]:
        """Return the subwords of each utterance; raise if one is too long for the encoder."""
        result = []
        for found in self.try_batch(utterances):
            if isinstance(found, TextError):
                raise found
            result.append(found)
        return result

    def try_batch(self, utterances: Sequence[str]) -> list[Subwords | TextError]:
        """Return the subwords of each utterance, or the error for one that is too long for the encoder."""
        # A lone surrogate cannot be encoded; a question mark in its place keeps all offsets.
        plain = [utterance.encode(errors="replace").decode() for utterance in utterances]
        encodings = [self._tokenizer.encode(plain[0])] if len(plain) == 1 else self._tokenizer.encode_batch(plain)
        return [self._subwords(utterance, found) for utterance, found in zip(utterances, encodings, strict=True)]

    def _subwords(self, utterance: str, encoding: Encoding) -> Subwords | TextError:
        if len(encoding) > self.max_length:
            return TextError(
                f"an utterance of {len(encoding)} subwords is too long: the encoder takes {self.max_length}; "
                f"it starts with {utterance[:40]!r}"
            )
        # The first and the last are special tokens, as was checked when the tokenizer was read.
        return Subwords(tuple(encoding.ids), tuple(map(Span._make, encoding.offsets[1:-1])))
