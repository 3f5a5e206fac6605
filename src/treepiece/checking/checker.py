"""Checks data in one pass over its rows, in bounded memory: hashes, counters and a few examples, but no rows.

An utterance leaves an entry of 16 bytes in a table; a row of eval also leaves its signatures (`signatures`), about
ten of them. Both tables have limits, and so have the counters of labels. What is beyond the limits is not compared,
and the report says so. Examples are places until the end; then their rows are read again.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from treepiece.checking.edges import Edge, cut_words, stray_edges
from treepiece.checking.findings import CheckReport, Finding, FindingKind, Place, Quote
from treepiece.checking.places import Places
from treepiece.checking.signatures import SignatureTable, near_signatures, normal_words, parse_signature, signature
from treepiece.checking.utterances import Entry, EvalIndex
from treepiece.checks import fraction, whole_number
from treepiece.data.reader import IN_MEMORY, RowStream, find_files, stream_rows
from treepiece.data.rows import BadRow, ReadReport, Row
from treepiece.decoding.search import Pair, label_pairs
from treepiece.errors import DataError
from treepiece.progress import NoProgress, Progress
from treepiece.trees.brackets import quote_label
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node

_BATCH = 256
_MAX_LABELS = 100_000
_MAX_EDGES = 1_000
_CONVENTION = 10
_BYTES_PER_UPDATE = 1 << 18


@dataclass(frozen=True)
class CheckConfig:
    """The settings of a check.

    Args:
        min_rows: A label with fewer training rows is reported.
        min_confidence: How confident a model must be of another parse for a row to be reported.
        examples: The most examples of each kind.
        max_signatures: The most signatures in a table. A full table of the default size takes 256 MB.
    """

    min_rows: int = 10
    min_confidence: float = 0.9
    examples: int = 5
    max_signatures: int = 3 << 22

    def __post_init__(self) -> None:
        whole_number("min_rows", self.min_rows, 1)
        whole_number("examples", self.examples, 0, 1_000)
        whole_number("max_signatures", self.max_signatures, 1)
        fraction("min_confidence", self.min_confidence)


class ModelParse(NamedTuple):
    """A model's parse of a row: whether it is the annotated one, and how confident the model is of it."""

    frame: Frame
    is_same: bool
    confidence: float


Annotate = Callable[[Sequence[Row]], Sequence[ModelParse | None]]
"""Returns a model's parses of rows; None for a row with labels that it does not know, or one that it cannot parse."""


def check_rows(
    data: RowStream,
    eval: RowStream | None = None,  # noqa: A002  # the name of the split
    *,
    split: str = "train",
    eval_split: str = "eval",
    annotate: Annotate | None = None,
    config: CheckConfig | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """Return what may be wrong with training rows, and with eval rows that go with them.

    >>> rows = [("rain today", "[IN:WEATHER rain [SL:DATE today ] ]"), ("Rain today?", "[IN:RAIN Rain today ? ]")]
    >>> report = check_rows(rows)
    >>> report.counts[FindingKind.CONFLICT], str(report.examples[FindingKind.CONFLICT][0].where)
    (1, 'the data, line 2')
    """
    checker = _Checker(config or CheckConfig(), annotate, progress or NoProgress())
    # Eval comes first: only the signatures of eval rows are kept, and training rows are looked up among them.
    if eval is not None:
        checker.read(_Split("eval", checker.config), eval, eval_split)
    checker.read(_Split("train", checker.config), data, split)
    return checker.report()


_Key = TypeVar("_Key")


class _Tally(Generic[_Key]):
    """Counts the rows with each label or nesting, and keeps the place of the first."""

    def __init__(self) -> None:
        self.rows: Counter[_Key] = Counter()
        self.first: dict[_Key, int] = {}
        self.n_dropped = 0

    def add(self, key: _Key, place: int) -> None:
        if key in self.first or len(self.first) < _MAX_LABELS:
            self.first.setdefault(key, place)
            self.rows[key] += 1
        else:
            self.n_dropped += 1


class _Split:
    """What is kept of a split."""

    def __init__(self, name: str, config: CheckConfig) -> None:
        self.name = name
        self.n_rows = 0
        self.utterances = SignatureTable(config.max_signatures)
        self.labels: _Tally[str] = _Tally()
        self.nestings: _Tally[Pair] = _Tally()

    def rarest(self) -> list[tuple[str, int]]:
        """Return the labels and how many rows each has, the rarest first."""
        return sorted(self.labels.rows.items(), key=lambda item: (item[1], item[0]))


@dataclass(frozen=True)
class _Draft:
    """An example whose rows may still have to be read again: `other` is the place of a row to compare with."""

    place: int
    found: str
    frame: Frame | None = None
    other: int | None = None
    parses: tuple[Quote, ...] = ()


@dataclass
class _Refusals(ReadReport):
    """Passes on rows that cannot be read, instead of keeping all of them."""

    on_refused: Callable[[BadRow], None] = field(default=lambda bad: None)

    def refuse(self, bad: BadRow) -> None:
        self.on_refused(bad)


class _Checker:
    """Collects findings, split by split."""

    def __init__(self, config: CheckConfig, annotate: Annotate | None, progress: Progress) -> None:
        self.config = config
        self._annotate = annotate
        self._progress = progress
        self._splits: dict[str, _Split] = {}
        self._places = Places()
        self._near = EvalIndex(config.max_signatures)
        self._counts: Counter[FindingKind] = Counter()
        self._drafts: dict[FindingKind, list[_Draft]] = {kind: [] for kind in FindingKind}
        self._unreadable: list[Finding] = []
        self._edges: dict[tuple[str, str], _EdgeCount] = {}
        self._n_edges = 0
        self._batch: list[tuple[int, Row]] = []
        self._suspects: list[tuple[float, int, _Draft]] = []  # a heap: the least suspicious first
        self._n_not_compared = 0

    def read(self, split: _Split, data: RowStream, files: str) -> None:
        """Collect from all rows of a split."""
        self._splits[split.name] = split
        name = _NAMES[split.name]
        report = _Refusals(
            on_bytes=self._count_bytes(split.name, data, files), on_refused=lambda bad: self._refuse(bad, name)
        )
        n_bad = self._counts[FindingKind.UNREADABLE]
        is_open = False
        for source, row in stream_rows(data, split=files, report=report):
            file = name if source == IN_MEMORY else source
            if not is_open or file != self._places.file:
                self._places.open(file, data)
                is_open = True
            self._add(split, self._places.number(row.line), row)
        self._compare_batch()
        split.n_rows = report.n_rows
        if not split.n_rows and self._counts[FindingKind.UNREADABLE] == n_bad:
            raise DataError(f"{data if isinstance(data, str | Path) else name}: there are no rows in it")

    def _count_bytes(self, name: str, data: RowStream, split: str) -> Callable[[int], None] | None:
        if not isinstance(data, str | Path) or str(data) == "-":
            return None
        total = sum(file.stat().st_size for file in find_files(data, split)) / 1024
        done = shown = 0

        def count(n_bytes: int) -> None:
            nonlocal done, shown
            done += n_bytes
            if done - shown >= _BYTES_PER_UPDATE:
                shown = done
                self._progress.update(f"checking {name}", done / 1024, total or None)

        return count

    def _refuse(self, bad: BadRow, name: str) -> None:
        self._counts[FindingKind.UNREADABLE] += 1
        if len(self._unreadable) < self.config.examples:
            self._unreadable.append(Finding(FindingKind.UNREADABLE, _place(bad, name), bad.reason))

    def _add(self, split: _Split, place: int, row: Row) -> None:
        for pair in _pairs(row.skeleton):
            split.nestings.add(pair, place)
        for label in _labels(row.skeleton):
            split.labels.add(label, place)
        if row.frame is None or not row.frame.words:
            return
        self._add_utterance(split, place, row.frame)
        self._check_spans(place, row.frame)
        if self._annotate is not None:
            self._batch.append((place, row))
            if len(self._batch) == _BATCH:
                self._compare_batch()

    def _add_utterance(self, split: _Split, place: int, frame: Frame) -> None:
        words, parse = normal_words(frame.utterance), parse_signature(frame)
        signatures = near_signatures(words) if "eval" in self._splits else [signature(words)]
        key = signatures[0]
        known = split.utterances.get(key)
        if known is None:
            split.utterances.put(key, Entry(parse, False, place).pack())
        else:
            entry = Entry.unpack(known)
            if entry.parse != parse and not entry.has_others:
                split.utterances.put(key, entry._replace(has_others=True).pack())
                found = "the utterance has another parse than in"
                self._note(FindingKind.CONFLICT, _Draft(place, found, frame, other=entry.place))
        if split.name == "eval":
            self._near.add(place, parse, signatures)
        elif "eval" in self._splits:
            self._near.mark(place, signatures)

    def _check_spans(self, place: int, frame: Frame) -> None:
        for leaf in cut_words(frame):
            found = f"{leaf.label} {leaf.text!r:.60} begins or ends inside a word"
            self._note(FindingKind.CUT_WORD, _Draft(place, found, frame))
        for edge in stray_edges(frame):
            count = self._edges.get((edge.leaf.label, edge.text))
            if count is None:
                if len(self._edges) >= _MAX_LABELS:
                    continue
                count = self._edges[edge.leaf.label, edge.text] = _EdgeCount(edge)
            count.add(edge)
            if edge.is_inside and len(count.drafts) < self.config.examples and self._n_edges < _MAX_EDGES:
                self._n_edges += 1
                found = f"{edge.leaf.label} {edge.leaf.text!r:.60} includes {edge.text}"
                count.drafts.append(_Draft(place, found, frame))

    def _compare_batch(self) -> None:
        """Compare the rows of the batch with a model's parses, and keep the most suspicious."""
        if self._annotate is None or not self._batch:
            return
        parses = self._annotate([row for _, row in self._batch])
        for (place, row), parse in zip(self._batch, parses, strict=True):
            if parse is None:
                self._n_not_compared += 1
            elif not parse.is_same and parse.confidence >= self.config.min_confidence:
                self._counts[FindingKind.LIKELY_ERROR] += 1
                found = f"the model is confident of another parse: {parse.confidence:.4f}"
                draft = _Draft(place, found, row.frame, parses=(Quote("model", parse.frame),))
                heapq.heappush(self._suspects, (parse.confidence, -place, draft))
                if len(self._suspects) > self.config.examples:
                    heapq.heappop(self._suspects)
        self._batch.clear()

    def _note(self, kind: FindingKind, draft: _Draft) -> None:
        self._counts[kind] += 1
        if len(self._drafts[kind]) < self.config.examples:
            self._drafts[kind].append(draft)

    def report(self) -> CheckReport:
        """Return the report, once all splits have been read."""
        train, eval_rows = self._splits["train"], self._splits.get("eval")
        if eval_rows is not None:
            self._compare_splits(train, eval_rows)
        self._count_labels(train)
        self._count_edges()
        self._drafts[FindingKind.LIKELY_ERROR] = [draft for *_, draft in sorted(self._suspects, reverse=True)]
        kinds = [kind for kind in FindingKind if self._is_checked(kind)]
        examples = self._finish({kind: self._drafts[kind] for kind in kinds})
        return CheckReport(
            train.n_rows,
            None if eval_rows is None else eval_rows.n_rows,
            {kind: self._counts[kind] for kind in kinds},
            {FindingKind.UNREADABLE: tuple(self._unreadable)} | examples,
            tuple(self._notes()),
        )

    def _is_checked(self, kind: FindingKind) -> bool:
        if kind is FindingKind.LIKELY_ERROR:
            return self._annotate is not None
        return "eval" in self._splits or kind not in _NEED_EVAL

    def _compare_splits(self, train: _Split, other: _Split) -> None:
        for place, parse, signatures in self._near.rows():
            known = train.utterances.get(signatures[0])
            if known is not None:
                entry = Entry.unpack(known)
                self._note(FindingKind.LEAK, _Draft(place, "the utterance is also in", other=entry.place))
                if not entry.has_others and entry.parse != parse:
                    self._note(
                        FindingKind.CONTRADICTION,
                        _Draft(place, "the utterance has another parse than in", other=entry.place),
                    )
            else:
                hit = next(filter(None, map(self._near.hits.get, signatures)), None)
                if hit is not None:
                    self._note(
                        FindingKind.NEAR_DUPLICATE, _Draft(place, "the utterance differs in one word from", other=hit)
                    )
        for label, n in other.rarest():
            if label not in train.labels.rows:
                found = f"{quote_label(label)} is in {_n_rows(n)} of eval and in no training row"
                self._note(FindingKind.UNSEEN_LABEL, _Draft(other.labels.first[label], found))
        for pair, n in other.nestings.rows.items():
            is_known = all(label in train.labels.rows for label in pair if label is not None)
            if is_known and pair not in train.nestings.rows:
                found = f"{_nesting(pair)} is in {_n_rows(n)} of eval and in no training row"
                self._note(FindingKind.UNSEEN_NESTING, _Draft(other.nestings.first[pair], found))

    def _count_labels(self, train: _Split) -> None:
        for label, n in train.rarest():
            if n < self.config.min_rows:
                found = f"{quote_label(label)} is in {_n_rows(n)}"
                self._note(FindingKind.RARE_LABEL, _Draft(train.labels.first[label], found))
        for pair, n in train.nestings.rows.items():
            # A nesting of a label that itself is in one row only says nothing new.
            if n == 1 and pair[0] is not None and all(train.labels.rows[label] > 1 for label in pair if label):
                found = f"{_nesting(pair)} is in one row"
                self._note(FindingKind.RARE_NESTING, _Draft(train.nestings.first[pair], found))

    def _count_edges(self) -> None:
        drafts = []
        for count in self._edges.values():
            if count.inside and not count.is_convention:
                self._counts[FindingKind.STRAY_TEXT] += count.inside
                drafts += count.drafts
        drafts.sort(key=lambda draft: draft.place)
        self._drafts[FindingKind.STRAY_TEXT] = drafts[: self.config.examples]

    def _finish(self, drafts: dict[FindingKind, list[_Draft]]) -> dict[FindingKind, tuple[Finding, ...]]:
        """Return the examples with their rows, which are read again where they were not at hand."""
        few = [draft for some in drafts.values() for draft in some]
        wanted = {draft.place for draft in few if draft.frame is None}
        wanted |= {draft.other for draft in few if draft.other is not None}
        frames = self._places.frames(wanted)
        return {
            kind: tuple(self._finding(kind, draft, frames) for draft in some)
            for kind, some in drafts.items()
            if kind is not FindingKind.UNREADABLE
        }

    def _finding(self, kind: FindingKind, draft: _Draft, frames: dict[int, Frame]) -> Finding:
        frame = draft.frame or frames.get(draft.place)
        found, parses = draft.found, [Quote("this row", frame)] if frame else []
        if draft.other is not None:
            where = str(self._places.locate(draft.other))
            found += f" {where}"
            if draft.other in frames:
                parses.append(Quote(where, frames[draft.other]))
        return Finding(
            kind,
            self._places.locate(draft.place),
            found,
            frame.utterance if frame else None,
            (*parses, *draft.parses),
        )

    def _notes(self) -> Iterator[str]:
        tables = [split.utterances for split in self._splits.values()]
        n = sum(table.n_dropped for table in tables) + self._near.n_dropped
        if n:
            yield f"not compared with others: {_n_rows(n)}; the tables are full (max_signatures)"
        n = sum(tally.n_dropped for split in self._splits.values() for tally in (split.labels, split.nestings))
        if n:
            yield f"not counted: {n:,} labels and nestings; there are more than {_MAX_LABELS:,} different ones"
        if self._n_not_compared:
            n = self._n_not_compared
            yield f"not compared with the model: {_n_rows(n)} with unknown labels, or too long for it"


@dataclass
class _EdgeCount:
    """How often a label has some text inside the edge of its spans, and how often next to them."""

    edge: Edge
    inside: int = 0
    outside: int = 0
    drafts: list[_Draft] = field(default_factory=list)

    def add(self, edge: Edge) -> None:
        self.inside += edge.is_inside
        self.outside += not edge.is_inside

    @property
    def is_convention(self) -> bool:
        """Whether the text belongs to the values of this label: most of its spans include it, ten or more."""
        return self.edge.may_belong and self.inside >= _CONVENTION and self.inside > self.outside


def _place(bad: BadRow, name: str) -> Place:
    return Place(name if bad.file == IN_MEMORY else bad.file, bad.line)


_NAMES = {"train": IN_MEMORY, "eval": "the eval data"}
_NEED_EVAL = {
    FindingKind.CONTRADICTION,
    FindingKind.LEAK,
    FindingKind.NEAR_DUPLICATE,
    FindingKind.UNSEEN_LABEL,
    FindingKind.UNSEEN_NESTING,
}


@lru_cache(maxsize=1 << 14)
def _pairs(skeleton: Node) -> frozenset[Pair]:
    return frozenset(label_pairs([skeleton]))


@lru_cache(maxsize=1 << 14)
def _labels(skeleton: Node) -> frozenset[str]:
    return frozenset(node.label for node in skeleton.nodes())


def _nesting(pair: Pair) -> str:
    parent, child = pair
    return f"{quote_label(child)} below {quote_label(parent)}" if parent else f"{quote_label(child)} at the root"


def _n_rows(n: int) -> str:
    return "one row" if n == 1 else f"{n:,} rows"
