"""Examples: rows as inputs of models, with subwords, and the span of each leaf in subwords."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from treepiece.data.rows import Row
from treepiece.decoding.types import Hypothesis
from treepiece.errors import DataError, TextError
from treepiece.evaluation.outcomes import Outcome, compare
from treepiece.text import Subwords, SubwordTokenizer
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame

_CHUNK = 1024


@dataclass(frozen=True)
class Example:
    """A frame, the subwords of its utterance, and the subwords of each of its leaves.

    `unit_ids` are the units that the TreePiece parser learns to generate; by default, those of the best partition.
    """

    frame: Frame
    subwords: Subwords
    spans: tuple[Span, ...]
    domain: str | None = None
    line: int = 0
    unit_ids: tuple[int, ...] | None = None


def make_examples(
    rows: Sequence[Row],
    subwords: SubwordTokenizer,
    on_rows: Callable[[int], None] | None = None,
) -> tuple[list[Example], list[str]]:
    """Return an example for each row whose utterance fits into the encoder, and for each other row the reason.

    `on_rows` is called with the number of finished rows.
    """
    examples: list[Example] = []
    left_out: list[str] = []
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        frames = [_frame(row) for row in chunk]
        encodings = subwords.try_batch([frame.utterance for frame in frames])
        for row, frame, encoding in zip(chunk, frames, encodings, strict=True):
            if isinstance(encoding, TextError):
                left_out.append(f"line {row.line}: {encoding}")
            else:
                examples.append(Example(frame, encoding, _spans(frame, encoding), row.domain, row.line))
        if on_rows:
            on_rows(start + len(chunk))
    return examples, left_out


def with_frames(examples: Sequence[Example], frames: Sequence[Frame], subwords: SubwordTokenizer) -> Iterator[Example]:
    """Yield each example with another frame of the same skeleton.

    If the utterance of that frame does not fit into the encoder, the example stays as it is.
    """
    for start in range(0, len(examples), _CHUNK):
        chunk = frames[start : start + _CHUNK]
        encodings = subwords.try_batch([frame.utterance for frame in chunk])
        for example, frame, encoding in zip(examples[start : start + _CHUNK], chunk, encodings, strict=True):
            if isinstance(encoding, TextError):
                yield example
            else:
                yield replace(example, frame=frame, subwords=encoding, spans=_spans(frame, encoding))


def _spans(frame: Frame, subwords: Subwords) -> tuple[Span, ...]:
    return tuple(subwords.covering(leaf.chars) for leaf in frame.leaves)


def _frame(row: Row) -> Frame:
    if row.frame is None or not row.frame.words:
        raise DataError(
            f"line {row.line}: a tree without an utterance: a parser needs rows of `utterance <tab> parse` "
            "with the labels IN:... and SL:..."
        )
    return row.frame


def too_large(example: Example, max_length: int, *, linear: bool) -> str | None:
    """Return why a frame does not fit into a decoder of `max_length` positions; None if it does.

    The span decoder reads an opening and a closing token for each node. The baselines also generate two pointers per
    leaf.
    """
    n_tokens = 2 * example.frame.skeleton.n_nodes
    if linear:
        n_tokens += 2 * sum(span.start < span.end for span in example.spans)
    if n_tokens <= max_length:
        return None
    return f"line {example.line}: a frame of {n_tokens} tokens is too large: the decoder takes {max_length}"


def outcome_of(example: Example, hypothesis: Hypothesis) -> Outcome:
    """Return a hypothesis together with the gold frame of its example."""
    chars = [example.subwords.chars(span) for span in hypothesis.spans]
    return compare(
        example.frame,
        hypothesis.skeleton,
        chars,
        domain=example.domain,
        passes=hypothesis.passes,
        line=example.line,
    )
