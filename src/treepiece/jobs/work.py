"""The work on one piece: read its rows, parse their texts, write rows and answers as a part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from treepiece.jobs.answers import answer, try_texts
from treepiece.jobs.columns import Kind
from treepiece.jobs.job import Job
from treepiece.jobs.sinks import open_sink
from treepiece.jobs.sources import Piece, open_source
from treepiece.runtime.parser import Parser

_EXAMPLES = 5


@dataclass(frozen=True)
class PartFacts:
    """What is known of a part: the rows that it covers, and what came of them."""

    first: int
    rows: int
    bad: int = 0
    not_understood: int = 0
    examples: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the facts as a value that `json.dumps` can write."""
        return asdict(self)


@dataclass(frozen=True)
class Part:
    """The rows of a piece with their answers, in the format of the output."""

    facts: PartFacts
    data: bytes


class Worker:
    """Makes parts. What it makes of a piece depends on the piece alone, whoever does the work, and when."""

    def __init__(self, job: Job, columns: Mapping[str, Kind], parser: Parser) -> None:
        self.job = job
        self.parser = parser
        self.source = open_source(job.input, job.column)
        self.sink = open_sink(job.output_format, self.source, columns)

    def __call__(self, piece: Piece) -> Part:
        """Return the part of a piece."""
        records = self.source.read(piece)
        results = try_texts(self.parser, records.texts, nbest=self.job.nbest, min_confidence=self.job.min_confidence)
        answers = [answer(result, nbest=self.job.nbest) for result in results]
        errors = [
            f"{self.source.where(piece.first + number)}: {found['error']}"
            for number, found in enumerate(answers)
            if found["error"] is not None
        ]
        n_not_understood = sum(found["error"] is None and not found["understood"] for found in answers)
        facts = PartFacts(piece.first, piece.rows, len(errors), n_not_understood, errors[:_EXAMPLES])
        return Part(facts, self.sink.encode(records, answers))
