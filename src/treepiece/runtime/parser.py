"""`Parser`: text in, frames out, without PyTorch."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import overload

from treepiece.bundle import BUNDLED
from treepiece.checks import fraction, one_of, whole_number
from treepiece.decoding.pipeline import confidence
from treepiece.decoding.types import DecodingConfig, Hypothesis
from treepiece.definition import ModelKind
from treepiece.errors import OptionError, TextError
from treepiece.runtime.cores import count_cores
from treepiece.runtime.loading import RuntimeModel, load_bundle
from treepiece.runtime.result import Candidate, Part, Result
from treepiece.runtime.sessions import Precision, as_ids
from treepiece.runtime.splitting import cuts
from treepiece.spelling import TextTokenizer, TokenizedText
from treepiece.text import Subwords
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame

MAX_NBEST = 100
MAX_CHARACTERS = 100_000
"""A longer text is refused before it is split into subwords: it is too long for every encoder."""
SEVERAL = 0.5
"""Above this probability of several requests in one text, its parts are parsed too."""
_GROUP = {Precision.FLOAT: 32, Precision.INT8: 1}
"""The number of texts per run. In int8 it is 1: the texts of a run share the scale of rounding, so a result would
depend on the other texts."""


class Parser:
    """Parses texts with the model of a bundle. Threads may share it; a text has the same result alone and in a batch.

    >>> parser = Parser("bundled")
    >>> parser("wake me up at 7 am").tree
    '[IN:CREATE_ALARM [SL:DATE_TIME at 7 am ] ]'

    Args:
        model: A folder with a bundle that has graphs, or `"bundled"`, the model that comes with treepiece. Write
            `"./bundled"` for a folder of that name.
        precision: `"int8"` or `"float"`; by default the fastest that the bundle has.
        threads: The number of threads that parse one text, and of texts of a batch that are parsed in parallel; by
            default, the number of cores.
        decoding: Settings of decoding that replace those of the bundle.
        spelling: Whether words that the model has never seen are corrected before parsing (see `Result.corrections`);
            a bundle without a dictionary corrects nothing.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        precision: Precision | str | None = None,
        threads: int | None = None,
        decoding: DecodingConfig | None = None,
        spelling: bool = True,
    ) -> None:
        wanted = one_of("precision", precision, Precision) if precision is not None else None
        self.threads = whole_number("threads", threads if threads is not None else count_cores(), 1, 1024)
        self._loaded = load_bundle(model, precision=wanted, threads=self.threads, decoding=decoding)
        self.bundle, self.precision = self._loaded.bundle, self._loaded.precision
        self.definition, self.subwords = self._loaded.definition, self._loaded.subwords
        self.text_tokenizer = TextTokenizer(self.subwords, self._loaded.dictionary if spelling else None)
        self.decoding, self.metadata = self._loaded.decoding, self._loaded.metadata
        self.scope = self._loaded.scope
        self.model = self._loaded.model()
        # A few units are very frequent. The cache does not refer to the parser, which is freed as soon as it is unused.
        self._units = lru_cache(maxsize=1 << 14)(partial(_write_units, self.definition.tokenizer))

    @classmethod
    def load(
        cls,
        model: str | Path,
        *,
        precision: Precision | str | None = None,
        threads: int | None = None,
        spelling: bool = True,
    ) -> Parser:
        """Return a parser for a bundle that `treepiece export` wrote; the same as `Parser(model)`."""
        return cls(model, precision=precision, threads=threads, spelling=spelling)

    @classmethod
    def bundled(
        cls, *, precision: Precision | str | None = None, threads: int | None = None, spelling: bool = True
    ) -> Parser:
        """Return a parser for the model that comes with treepiece."""
        return cls(BUNDLED, precision=precision, threads=threads, spelling=spelling)

    def __repr__(self) -> str:
        kind, n = self.definition.kind, len(self.labels)
        return f"Parser({str(self.bundle.folder)!r}, kind={str(kind)!r}, precision={str(self.precision)!r}, {n} labels)"

    @property
    def labels(self) -> tuple[str, ...]:
        """The intents and slots that the model knows."""
        return self.definition.labels

    @property
    def corrects_spelling(self) -> bool:
        """Whether spelling is corrected: it was not turned off, and the bundle has a dictionary."""
        return self.text_tokenizer.corrector is not None

    def open(self) -> None:
        """Open what batches need too: afterwards the folder of the bundle may change or be removed."""
        _ = self._together

    @cached_property
    def _together(self) -> RuntimeModel:
        """The model with one thread per run, for batches: parallel runs are faster than parallel threads in a run."""
        return self.model if self.threads == 1 else self._loaded.model_in_one_thread()

    @cached_property
    def _workers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, "treepiece")

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a str is a sequence of texts, too
        self, text: str, *, nbest: int = 1, min_confidence: float = 0.0
    ) -> Result: ...

    @overload
    def __call__(self, text: Sequence[str], *, nbest: int = 1, min_confidence: float = 0.0) -> list[Result]: ...

    def __call__(
        self, text: str | Sequence[str], *, nbest: int = 1, min_confidence: float = 0.0
    ) -> Result | list[Result]:
        """Return the meaning of a text, or of each of several texts.

        Args:
            text: One text, or a list of texts (see `batch`).
            nbest: The maximum number of candidates. The best one does not depend on it.
            min_confidence: Below this confidence the text counts as not understood (see `Result.understood`).
        """
        if not isinstance(text, str):
            return self.batch(text, nbest=nbest, min_confidence=min_confidence)
        request = self.request(nbest, min_confidence)
        begin = perf_counter()
        (found,) = tokenize(self.text_tokenizer, [text])
        if isinstance(found, TextError):
            raise found
        (result,) = self._parse(self.model, [(text, found)], request, perf_counter() - begin)
        return self._with_requests(result, request)

    parse = __call__

    def request(self, nbest: int, min_confidence: float) -> ParseRequest:
        """Return the validated options of a request; raise if this model cannot serve it."""
        if nbest != 1 and self.definition.kind is ModelKind.NAR:
            raise OptionError(f"a non-autoregressive parser has one candidate for a text: nbest must be 1, got {nbest}")
        return ParseRequest(nbest, min_confidence)

    def batch(self, texts: Sequence[str], *, nbest: int = 1, min_confidence: float = 0.0) -> list[Result]:
        """Return the meaning of each text; raise if a text cannot be read, and say which."""
        results = []
        for number, result in enumerate(self.try_batch(texts, nbest=nbest, min_confidence=min_confidence)):
            if isinstance(result, TextError):
                raise TextError(f"text {number}: {result}")
            results.append(result)
        return results

    def try_batch(
        self, texts: Sequence[str], *, nbest: int = 1, min_confidence: float = 0.0
    ) -> list[Result | TextError]:
        """Return the meaning of each text, or why it cannot be read, in the order of the texts."""
        request = self.request(nbest, min_confidence)
        if isinstance(texts, str):
            raise OptionError("texts must be a list of texts, got one text: call the parser itself with it")
        begin = perf_counter()
        found = tokenize(self.text_tokenizer, texts)
        seconds = (perf_counter() - begin) / max(1, len(texts))
        answers: dict[int, Result | TextError] = {}
        lengths: dict[int, list[tuple[int, str, TokenizedText]]] = defaultdict(list)
        for place, (text, one) in enumerate(zip(texts, found, strict=True)):
            if isinstance(one, TextError):
                answers[place] = one
            else:
                lengths[len(one.subwords.ids)].append((place, text, one))
        size = _GROUP[self.precision]
        groups = [rows[start : start + size] for rows in lengths.values() for start in range(0, len(rows), size)]

        def parse(group: list[tuple[int, str, TokenizedText]]) -> list[Result]:
            results = self._parse(self._together, [(text, one) for _, text, one in group], request, seconds)
            return [self._with_requests(result, request) for result in results]

        for group, results in zip(groups, self._workers.map(parse, groups), strict=True):
            answers |= {place: result for (place, _, _), result in zip(group, results, strict=True)}
        return [answers[place] for place in range(len(texts))]

    def _parse(
        self, model: RuntimeModel, group: Sequence[tuple[str, TokenizedText]], request: ParseRequest, tokenizing: float
    ) -> list[Result]:
        """Return the results of texts with the same number of subwords; `tokenizing` is the seconds per text."""
        begin = perf_counter()
        found = model.decode(as_ids([one.subwords.ids for _, one in group]), nbest=request.nbest)
        model_ms = (perf_counter() - begin) * 1e3 / len(group)
        results = []
        for (text, one), (hypotheses, states) in zip(group, found, strict=True):
            begin = perf_counter()
            scope = None if self.scope is None or states is None else self.scope(states)
            candidates = self._candidates(text, one.subwords, hypotheses, 1.0 if scope is None else scope.one_request)
            times = {"subwords": tokenizing * 1e3, "model": model_ms, "frame": (perf_counter() - begin) * 1e3}
            is_understood = candidates[0].confidence >= request.min_confidence
            results.append(Result(text, candidates, is_understood, times, one.corrections, scope))
        return results

    def _with_requests(self, result: Result, request: ParseRequest) -> Result:
        """Return a result with those of its parts, if the text is probably several requests and can be cut."""
        if result.scope is None or result.scope.several <= SEVERAL:
            return result
        found = [[self._part(result.text, span, request) for span in cut] for cut in cuts(result.text)]
        tried = [[part for part in parts if part is not None] for parts in found]
        whole = [parts for parts in tried if len(parts) == 2]
        if not whole:
            return result
        best = max(whole, key=lambda parts: min(part.result.confidence for part in parts))
        return replace(result, requests=tuple(best))

    def _part(self, text: str, span: Span, request: ParseRequest) -> Part | None:
        """Return the result for a part of a text; None if it cannot be read."""
        begin = perf_counter()
        one = text[span.start : span.end]
        (found,) = tokenize(self.text_tokenizer, [one])
        if isinstance(found, TextError):
            return None
        (result,) = self._parse(self._together, [(one, found)], request, perf_counter() - begin)
        return Part(*span, result)

    def _candidates(
        self, text: str, subwords: Subwords, hypotheses: Sequence[Hypothesis], one_request: float
    ) -> tuple[Candidate, ...]:
        """Return the candidates; none can be right unless the text is one request in scope."""
        temperatures = self.decoding.temperatures
        # A candidate is never more confident than a better one.
        log_p = list(accumulate((one.log_p for one in hypotheses), min))
        return tuple(
            Candidate(
                Frame.from_chars(text, one.skeleton, [subwords.chars(span) for span in one.spans]),
                one_request * confidence(value, temperatures.parse),
                tuple(one_request * confidence(log_p, temperatures.leaf) for log_p in one.leaf_log_p),
                score,
                *self._units(one.unit_ids),
                one.passes,
            )
            for one, value, score in zip(hypotheses, log_p, _shares(log_p, temperatures.parse), strict=True)
        )


@dataclass(frozen=True)
class ParseRequest:
    """The options of a request."""

    nbest: int
    min_confidence: float

    def __post_init__(self) -> None:
        whole_number("nbest", self.nbest, 1, MAX_NBEST)
        fraction("min_confidence", self.min_confidence)


def tokenize(tokenizer: TextTokenizer, texts: Sequence[str]) -> list[TokenizedText | TextError]:
    """Return the subwords of each text, or why it cannot be read."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise OptionError(f"text {number} must be a str, got {type(text).__name__}")
    # Texts that are far too long are sorted out first, so that they cost nothing.
    found = tokenizer.try_batch([text if len(text) <= MAX_CHARACTERS else "" for text in texts])
    return [_check(text, tokenizer.subwords.max_length, one) for text, one in zip(texts, found, strict=True)]


def _check(text: str, max_length: int, found: TokenizedText | TextError) -> TokenizedText | TextError:
    if len(text) > MAX_CHARACTERS:
        return TextError(
            f"a text of {len(text):,} characters is too long: the encoder takes {max_length} subwords, "
            f"which are about as many words; it begins {text[:40]!r}"
        )
    if isinstance(found, TokenizedText) and not found.subwords.offsets:
        what = "is empty" if not text else "has no readable characters"
        return TextError(f"the text {what}, got {text[:40]!r}: give an utterance of one word or more")
    return found


def _write_units(
    tokenizer: TreePieceTokenizer | None, unit_ids: tuple[int, ...]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return units as text, and the unit of each node; a baseline has none."""
    if tokenizer is None:
        return (), ()
    return tuple(str(tokenizer.units[unit_id]) for unit_id in unit_ids), tuple(tokenizer.places(unit_ids))


def _shares(log_p: Sequence[float], temperature: float) -> list[float]:
    """Return the share of each of some candidates; the shares add up to one.

    >>> _shares([math.log(0.5), math.log(0.25)], 1.0)
    [0.6666666666666666, 0.3333333333333333]
    """
    best = max(log_p)
    if math.isinf(best):
        return [1 / len(log_p)] * len(log_p)
    weights = [math.exp((value - best) / temperature) for value in log_p]
    return [weight / sum(weights) for weight in weights]
