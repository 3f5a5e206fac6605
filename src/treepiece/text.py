"""Utterances as an encoder reads them: subword ids, and where each subword stands in the text.

Models point at subwords, frames at words, users read characters. The utterance goes in as it was typed, in training and
in production alike, and character offsets lead from one to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Encoding, Tokenizer

from treepiece.errors import TextError
from treepiece.trees.align import Span, covered, covering


@dataclass(frozen=True)
class Subwords:
    """The ids of an utterance with the encoder's special tokens, and the characters of each subword in between."""

    ids: tuple[int, ...]
    offsets: tuple[Span, ...]

    def covering(self, chars: Span) -> Span:
        """Return the subwords that a range of characters touches; an empty range at its end where it touches none."""
        return covering(self.offsets, chars)

    def chars(self, subwords: Span) -> Span:
        """Return the characters of a range of subwords."""
        return covered(self.offsets, subwords, self.offsets[-1].end if self.offsets else 0)


class SubwordTokenizer:
    """Cuts utterances into subwords; `text` is the contents of a `tokenizer.json` of Hugging Face."""

    def __init__(self, text: str, *, longest: int) -> None:
        try:
            self._tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # the library raises nothing narrower
            raise TextError(f"the subword tokenizer cannot be read: {error}") from None
        self.text = text
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._check_special_tokens()
        self.longest = longest
        """How many subwords, special tokens included, the encoder takes."""

    def _check_special_tokens(self) -> None:
        """Raise unless there is one special token before an utterance and one after it, as the models count on."""
        mask = self._tokenizer.encode("a").special_tokens_mask
        if mask[:1] != [1] or mask[-1:] != [1] or sum(mask) != 2:
            raise TextError(
                "the subword tokenizer must put one special token before an utterance and one after it, as those of "
                f"BERT and RoBERTa do; of this one the special tokens are {mask}"
            )

    def encode_batch(self, utterances: Sequence[str]) -> list[Subwords]:
        """Return the subwords of each utterance; one that is too long for the encoder is an error that says so."""
        result = []
        for found in self.try_batch(utterances):
            if isinstance(found, TextError):
                raise found
            result.append(found)
        return result

    def try_batch(self, utterances: Sequence[str]) -> list[Subwords | TextError]:
        """Return the subwords of each utterance, or, for one that is too long for the encoder, the error."""
        # A lone surrogate is no text; a question mark in its place keeps all offsets.
        plain = [utterance.encode(errors="replace").decode() for utterance in utterances]
        encodings = [self._tokenizer.encode(plain[0])] if len(plain) == 1 else self._tokenizer.encode_batch(plain)
        return [self._read(utterance, found) for utterance, found in zip(utterances, encodings, strict=True)]

    def _read(self, utterance: str, encoding: Encoding) -> Subwords | TextError:
        if len(encoding) > self.longest:
            return TextError(
                f"an utterance of {len(encoding)} subwords is too long: the encoder takes {self.longest}; "
                f"it begins {utterance[:40]!r}"
            )
        # The first and the last are special tokens, as was checked when the tokenizer was read.
        return Subwords(tuple(encoding.ids), tuple(map(Span._make, encoding.offsets[1:-1])))
