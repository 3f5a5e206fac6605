"""What a check finds: kinds of findings, examples with their place in the data, and the report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from treepiece.errors import TreeParseError
from treepiece.trees.frame import Frame


class Severity(StrEnum):
    """How bad a finding is: an error is a row that training skips, a hint may be right as it is."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


class FindingKind(StrEnum):
    """The kinds of findings, the most urgent first."""

    UNREADABLE = "unreadable"
    CONFLICT = "conflict"
    CONTRADICTION = "contradiction"
    LIKELY_ERROR = "likely-error"
    CUT_WORD = "cut-word"
    UNSEEN_LABEL = "unseen-label"
    UNSEEN_NESTING = "unseen-nesting"
    RARE_LABEL = "rare-label"
    LEAK = "leak"
    NEAR_DUPLICATE = "near-duplicate"
    STRAY_TEXT = "stray-text"
    RARE_NESTING = "rare-nesting"

    @property
    def about(self) -> Description:
        """What this kind of finding is, and what to do about it."""
        return _DESCRIPTIONS[self]


class Description(NamedTuple):
    """A kind of finding: its severity, what is counted, what was expected, and what to do."""

    severity: Severity
    counts: str
    expected: str
    advice: str


_DESCRIPTIONS = {
    FindingKind.UNREADABLE: Description(
        Severity.ERROR,
        "rows that cannot be read",
        "an utterance and its parse, with the same words",
        "correct these rows: training skips them",
    ),
    FindingKind.CONFLICT: Description(
        Severity.WARNING,
        "utterances with several parses within a split",
        "one parse for an utterance",
        "decide on one parse: a parser learns one of them and is wrong on the others",
    ),
    FindingKind.CONTRADICTION: Description(
        Severity.WARNING,
        "eval rows with another parse than the training rows of the same utterance",
        "the parse that the training rows have",
        "decide on one parse: a parser that learns the training rows is scored as wrong here",
    ),
    FindingKind.LIKELY_ERROR: Description(
        Severity.WARNING,
        "rows for which the model is confident of another parse",
        "the parse of the model, or one that it finds probable",
        "look at these rows, the most suspicious first; the model may be wrong too",
    ),
    FindingKind.CUT_WORD: Description(
        Severity.WARNING,
        "spans that begin or end inside a word",
        "spans of whole words",
        "check the words of the parse: a blank may be missing in the utterance",
    ),
    FindingKind.UNSEEN_LABEL: Description(
        Severity.WARNING,
        "labels in eval only",
        "training rows with every label",
        "add training rows or correct the label: a parser never writes a label that it was not trained on",
    ),
    FindingKind.UNSEEN_NESTING: Description(
        Severity.WARNING,
        "nestings (a label below a label) in eval only",
        "training rows with every nesting",
        "add training rows or correct the tree: a parser never writes a nesting that it was not trained on",
    ),
    FindingKind.RARE_LABEL: Description(
        Severity.WARNING,
        "labels with few training rows",
        "more rows with this label (--min-rows)",
        "add rows, merge the label with another, or correct it if it is a typo",
    ),
    FindingKind.LEAK: Description(
        Severity.WARNING,
        "eval rows whose utterance is in the training rows",
        "utterances that training has not seen",
        "report scores with and without these rows, or remove them from one of the splits",
    ),
    FindingKind.NEAR_DUPLICATE: Description(
        Severity.HINT,
        "eval rows that differ from a training row in one word",
        "utterances that are new in more than one word",
        "if most rows are like this, eval says little about other requests",
    ),
    FindingKind.STRAY_TEXT: Description(
        Severity.HINT,
        "spans that begin or end with punctuation, a blank or 'please'",
        "the words of the value alone",
        "move them out of the slot, or keep them in all rows of this label",
    ),
    FindingKind.RARE_NESTING: Description(
        Severity.HINT,
        "nestings (a label below a label) in one training row only",
        "more rows, or none",
        "check the tree of that row: a nesting that occurs once is often a slip",
    ),
}


class Place(NamedTuple):
    """A file and a line; the line of rows from memory is their number, from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


class Quote(NamedTuple):
    """A parse that a finding is about, and whose it is."""

    caption: str
    frame: Frame

    @property
    def tree(self) -> str:
        """The parse as TOP text, with the words of its slots."""
        try:
            return self.frame.to_brackets()
        except TreeParseError:  # words that TOP text cannot hold, such as a bracket
            return str(self.frame.tree)


@dataclass(frozen=True)
class Finding:
    """One thing that may be wrong: its kind, where it is, what was found, and the parses to look at."""

    kind: FindingKind
    where: Place
    found: str
    utterance: str | None = None
    parses: tuple[Quote, ...] = ()

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.kind.about.severity

    @property
    def expected(self) -> str:
        """What was expected instead."""
        return self.kind.about.expected

    @property
    def advice(self) -> str:
        """What to do."""
        return self.kind.about.advice

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a value that `json.dumps` accepts."""
        return {
            **self.where._asdict(),
            "kind": str(self.kind),
            "severity": str(self.severity),
            "found": self.found,
            "expected": self.expected,
            "advice": self.advice,
            "utterance": self.utterance,
            "parses": [{"caption": one.caption, "tree": one.tree} for one in self.parses],
        }


@dataclass(frozen=True)
class CheckReport:
    """The result of a check.

    `counts` has every kind that was looked for, with the number of findings, which is exact; `examples` are a few of
    each kind. `notes` say what was not checked. `eval_rows` is None without eval rows.
    """

    rows: int
    eval_rows: int | None
    counts: dict[FindingKind, int]
    examples: dict[FindingKind, tuple[Finding, ...]]
    notes: tuple[str, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether there is a finding that is an error."""
        return any(count for kind, count in self.counts.items() if kind.about.severity is Severity.ERROR)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a value that `json.dumps` accepts."""
        return {
            "rows": self.rows,
            "eval_rows": self.eval_rows,
            "counts": {str(kind): count for kind, count in self.counts.items()},
            "findings": [finding.to_json() for few in self.examples.values() for finding in few],
            "notes": list(self.notes),
        }
