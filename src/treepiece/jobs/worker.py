"""The work on one chunk of rows: read them, parse their texts, and encode rows and predictions as a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treepiece.errors import TextError, TreepieceError
from treepiece.jobs.columns import PREDICTED, ColumnType, Prediction
from treepiece.jobs.job import EXAMPLES, Job, JobSummary
from treepiece.jobs.part_files import OutputPart
from treepiece.jobs.sinks import open_sink
from treepiece.jobs.sources import Chunk, open_source
from treepiece.runtime.parser import Parser
from treepiece.runtime.result import Result


class Worker:
    """Turns chunks into parts. A part depends only on its chunk, not on the process or the time."""

    def __init__(self, job: Job, columns: Mapping[str, ColumnType], parser: Parser) -> None:
        self.job = job
        self.parser = parser
        self.source = open_source(job.input, job.column)
        self.sink = open_sink(job.output_format, self.source, columns)

    def __call__(self, chunk: Chunk) -> OutputPart:
        """Return the part for a chunk."""
        records = self.source.read(chunk)
        results = try_texts(self.parser, records.texts, nbest=self.job.nbest, min_confidence=self.job.min_confidence)
        predictions = [to_prediction(result, nbest=self.job.nbest) for result in results]
        errors = [
            f"{self.source.where(chunk.first + number)}: {found['error']}"
            for number, found in enumerate(predictions)
            if found["error"] is not None
        ]
        n_not_understood = sum(found["error"] is None and not found["understood"] for found in predictions)
        summary = JobSummary(chunk.rows, len(errors), n_not_understood, errors[:EXAMPLES])
        return OutputPart(chunk.first, summary, self.sink.encode(records, predictions))


def try_texts(
    parser: Parser, texts: Sequence[str | TreepieceError], *, nbest: int, min_confidence: float
) -> list[Result | TreepieceError]:
    """Return the result for each text; errors among the texts keep their places."""
    readable = [text for text in texts if isinstance(text, str)]
    results = iter(parser.try_batch(readable, nbest=nbest, min_confidence=min_confidence))
    return [next(results) if isinstance(text, str) else text for text in texts]


def check_tree(result: Result) -> TextError | None:
    """Return an error if a text was understood, but TOP text cannot hold its words."""
    if not result.understood or result.tree is not None:
        return None
    return TextError("TOP text cannot hold these words, because of a bracket between blanks: --json prints the leaves")


def to_prediction(result: Result | TreepieceError, *, nbest: int) -> Prediction:
    """Return the predicted columns of a row. They have no times, so they depend only on the row."""
    if isinstance(result, TreepieceError):
        return {**dict.fromkeys(PREDICTED), "understood": False, "error": str(result)}
    error = check_tree(result)
    found: Prediction = {
        "tree": result.tree,
        "confidence": result.confidence,
        "understood": result.understood,
        "error": str(error) if error else None,
    }
    if nbest > 1:
        found["nbest"] = [candidate.to_dict() for candidate in result.candidates]
    return found
