"""`Parser`: text in, frames out, without PyTorch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from time import perf_counter

from treepiece.decoding.parse import Parse
from treepiece.definition import ModelKind
from treepiece.errors import OptionError, TextError
from treepiece.options import fraction, one_of, whole_number
from treepiece.runtime.confidence import confidence, leaf_confidences, shares
from treepiece.runtime.cores import count_cores
from treepiece.runtime.graphs import Graphs, Precision, as_ids
from treepiece.runtime.models import (
    RuntimeModel,
    choose_precision,
    first_graph,
    load_definition,
    load_facts,
    load_subwords,
    load_temperatures,
    make_model,
    open_bundle,
)
from treepiece.runtime.reading import read_texts
from treepiece.runtime.result import Candidate, Result
from treepiece.shipped import BUNDLED
from treepiece.text import Subwords
from treepiece.trees.frame import Frame

MOST_READINGS = 100
_GROUP = {Precision.FLOAT: 32, Precision.INT8: 1}
"""How many texts share a run. In int8 each has its own: numbers are rounded on a scale that all of a run would share,
and an answer would depend on the texts beside it."""


class Parser:
    """Parses texts with the model of a bundle. Threads may share it; a text has the same answer alone and in a batch.

    `folder` is a bundle with graphs, or `bundled`: the model that comes with treepiece.
    `threads` is how many one text is parsed with, and how many texts of a batch at a time; by default, all cores.
    """

    def __init__(
        self, folder: str | Path, *, precision: Precision | str | None = None, threads: int | None = None
    ) -> None:
        wanted = one_of("precision", precision, Precision) if precision is not None else None
        self.threads = whole_number("threads", threads if threads is not None else count_cores(), 1, 1024)
        self.bundle = open_bundle(folder)
        self.precision = choose_precision(self.bundle, wanted)
        graphs = Graphs(self.bundle, self.precision, threads=self.threads)
        # Opening the first graph is half of the work, and goes on beside the rest of it.
        with ThreadPoolExecutor(1) as beside:
            opened = beside.submit(graphs.open, first_graph(self.bundle))
            self.facts = load_facts(self.bundle)
            self.definition = load_definition(self.bundle)
            self.subwords = load_subwords(self.bundle, self.facts)
            self.temperatures = load_temperatures(self.facts, self.precision)
            self.model = make_model(self.definition, graphs, self.facts)
            opened.result()

    @classmethod
    def load(
        cls, folder: str | Path, *, precision: Precision | str | None = None, threads: int | None = None
    ) -> Parser:
        """Return a parser for a bundle that `treepiece export` wrote; by default in the fastest precision it has.

        `Parser.load("bundled")` is `Parser.bundled()`; a folder of that name is `./bundled`.
        """
        return cls(folder, precision=precision, threads=threads)

    @classmethod
    def bundled(cls, *, precision: Precision | str | None = None, threads: int | None = None) -> Parser:
        """Return a parser for the model that comes with treepiece."""
        return cls(BUNDLED, precision=precision, threads=threads)

    def open(self) -> None:
        """Open all graphs now: from here on nothing is read from the bundle, and its folder may change or go."""
        for model in (self.model, self._together):
            model.graphs.open_all()

    @cached_property
    def _together(self) -> RuntimeModel:
        """The model with one thread a run, for batches: several runs at a time do more than several threads a run."""
        if self.threads == 1:
            return self.model
        return make_model(self.definition, Graphs(self.bundle, self.precision, threads=1), self.facts)

    @cached_property
    def _workers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, "treepiece")

    def __call__(self, text: str, *, nbest: int = 1, min_confidence: float = 0.0) -> Result:
        """Return what a text means: `nbest` readings of it, and `understood` False where the best is too doubtful."""
        asked = self.asked(nbest, min_confidence)
        begin = perf_counter()
        (found,) = read_texts(self.subwords, [text])
        if isinstance(found, TextError):
            raise found
        return self._parse(self.model, [(text, found)], asked, perf_counter() - begin)[0]

    def asked(self, nbest: int, min_confidence: float) -> Asked:
        """Return what a caller asks for; raise if this model cannot give it."""
        asked = Asked(nbest, min_confidence)
        if nbest > 1 and self.definition.kind is ModelKind.NAR:
            raise OptionError(f"a non-autoregressive model has one reading of a text: nbest must be 1, got {nbest}")
        return asked

    def batch(self, texts: Sequence[str], *, nbest: int = 1, min_confidence: float = 0.0) -> list[Result]:
        """Return what each text means; a text that cannot be read is an error that says which."""
        results = []
        for number, result in enumerate(self.try_batch(texts, nbest=nbest, min_confidence=min_confidence)):
            if isinstance(result, TextError):
                raise TextError(f"text {number}: {result}")
            results.append(result)
        return results

    def try_batch(
        self, texts: Sequence[str], *, nbest: int = 1, min_confidence: float = 0.0
    ) -> list[Result | TextError]:
        """Return what each text means, or why it cannot be read, in the order of the texts."""
        asked = self.asked(nbest, min_confidence)
        if isinstance(texts, str):
            raise OptionError("texts must be a list of texts, got one text: call the parser itself with it")
        begin = perf_counter()
        found = read_texts(self.subwords, texts)
        seconds = (perf_counter() - begin) / max(1, len(texts))
        answers: dict[int, Result | TextError] = {
            place: one for place, one in enumerate(found) if isinstance(one, TextError)
        }
        lengths: dict[int, list[tuple[int, str, Subwords]]] = defaultdict(list)
        for place, (text, one) in enumerate(zip(texts, found, strict=True)):
            if isinstance(one, Subwords):
                lengths[len(one.ids)].append((place, text, one))
        size = _GROUP[self.precision]
        groups = [rows[start : start + size] for rows in lengths.values() for start in range(0, len(rows), size)]

        def parse(group: list[tuple[int, str, Subwords]]) -> list[Result]:
            return self._parse(self._together, [(text, one) for _, text, one in group], asked, seconds)

        for group, results in zip(groups, self._workers.map(parse, groups), strict=True):
            answers |= {place: result for (place, _, _), result in zip(group, results, strict=True)}
        return [answers[place] for place in range(len(texts))]

    def _parse(
        self, model: RuntimeModel, group: Sequence[tuple[str, Subwords]], asked: Asked, reading: float
    ) -> list[Result]:
        """Return the results of texts that have equally many subwords; `reading` is the time that reading one took."""
        begin = perf_counter()
        parses = model.parse(as_ids([one.ids for _, one in group]), beam=asked.beam)
        model_ms = (perf_counter() - begin) * 1e3 / len(group)
        results = []
        for (text, one), few in zip(group, parses, strict=True):
            begin = perf_counter()
            readings = self._readings(text, one, few[: asked.nbest])
            times = {"subwords": reading * 1e3, "model": model_ms, "frame": (perf_counter() - begin) * 1e3}
            results.append(Result(text, readings, readings[0].confidence >= asked.min_confidence, times))
        return results

    def _readings(self, text: str, subwords: Subwords, parses: Sequence[Parse]) -> tuple[Candidate, ...]:
        scores = shares([parse.log_p for parse in parses], self.temperatures.parse)
        return tuple(
            Candidate(
                Frame.from_chars(text, parse.skeleton, [subwords.chars(span) for span in parse.spans]),
                confidence(parse.log_p, self.temperatures.parse),
                leaf_confidences(parse, self.temperatures.leaf),
                score,
                *self._units(parse.unit_ids),
                parse.passes,
            )
            for parse, score in zip(parses, scores, strict=True)
        )

    @cached_property
    def _units(self) -> Callable[[tuple[int, ...]], tuple[tuple[str, ...], tuple[int, ...]]]:
        """Return units as text, and the unit of each node; few are used often, so what was found once is kept."""
        tokenizer = self.definition.tokenizer

        def write(unit_ids: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[int, ...]]:
            if tokenizer is None:
                return (), ()
            return tuple(str(tokenizer.units[unit_id]) for unit_id in unit_ids), tuple(tokenizer.places(unit_ids))

        return lru_cache(maxsize=1 << 14)(write)


@dataclass(frozen=True)
class Asked:
    """What a caller asks for."""

    nbest: int
    min_confidence: float

    def __post_init__(self) -> None:
        whole_number("nbest", self.nbest, 1, MOST_READINGS)
        fraction("min_confidence", self.min_confidence)

    @property
    def beam(self) -> int:
        """How many candidates the search keeps: more than asked for, because equal trees become one."""
        return 1 if self.nbest == 1 else 2 * self.nbest
