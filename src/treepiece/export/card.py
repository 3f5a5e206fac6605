"""The model card of a bundle: the model, its scores and limits, its training data and recipe.

Most of a card comes from the model and the export. What only people know, such as the source of the data and their
licence, comes from `licence`, one line, and `notes`, Markdown that is copied unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import yaml

from treepiece.decoding.types import DecodingConfig
from treepiece.definition import Definition
from treepiece.export.parity import Parity, Quality
from treepiece.models.encoder import MINILM, RANDOM

_NAMES = {"treepiece": "A TreePiece", "ar": "An autoregressive", "nar": "A non-autoregressive"}
_ENCODERS = {
    MINILM: "[sentence-transformers/all-MiniLM-L6-v2]"
    "(https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), Apache-2.0, trained further"
}
"""Encoders with a short name, and the notice that their licence requires."""
_MOST_LABELS = 100
_EVAL = "eval"
"""The split that models are compared on during development."""

_INTRODUCTION = """\
# {name} semantic parser

Parses an utterance into a tree of intents and slots. Made with treepiece {version}.

- Encoder: {encoder}.
- Data and licence: {licence}.
- {size}."""

_USE = """\
## Use

`FOLDER` is the folder of this file.

```sh
{commands}
```"""

_SCORES = """\
## Scores

Measured on {data}.{development} EM (exact match) is the share of parses in which every label, their order and every
word are right. EM-S ignores the words.

{table}"""

_DEVELOPMENT = """ This is a development set: models and settings are chosen with it in view, so expect slightly lower
scores on other rows."""

_CONFIDENCE = """\
## Confidence

A confidence is p ** (1 / temperature), where p is the probability that the model gives its answer. The temperatures
({parse:.2f} for parses, {leaf:.2f} for leaves) were fitted on rows held out from the training data. The table shows
the expected calibration error (15 bins) on the rows above.

{errors}

`min_confidence` refuses answers of low confidence. On the same rows, this is the share of texts that are still
answered, and how many of those answers are right.

{answered}"""

_LIMITS = """\
## Limits

- The model knows only the intents and slots of its training data. A request for anything else, or in another language,
  gets the nearest of them. Set `min_confidence` to refuse answers of low confidence.
- Scores and confidences hold for texts like those that they were measured on.
- A text of more than {max_length:,} subwords is an error."""


@dataclass(frozen=True)
class Card:
    """The contents of a card; parities and qualities are by precision, those of weights as `weights-half`."""

    definition: Definition
    training: Mapping[str, Any]
    decoding: DecodingConfig
    max_length: int
    parities: Mapping[str, Parity]
    qualities: Mapping[str, Quality]
    data: str = ""
    licence: str = ""
    notes: str = ""

    def to_markdown(self) -> str:
        """Return the card."""
        sections = [
            self._introduction(),
            _USE.format(commands="\n".join(_commands(self.parities))),
            self._scores(),
            self._confidence(),
            _LIMITS.format(max_length=self.max_length),
            self.notes.strip(),
            _making(self.training),
            _checks(self.parities),
            _labels(self.definition.labels),
        ]
        return "\n\n".join(filter(None, sections)) + "\n"

    def _introduction(self) -> str:
        size = f"{len(self.definition.labels):,} labels"
        if self.definition.tokenizer is not None:
            size += f", {len(self.definition.tokenizer.units):,} units (subtrees that it generates in one step)"
        return _INTRODUCTION.format(
            name=_NAMES[self.definition.kind],
            version=version("treepiece"),
            encoder=_encoder(str(self.training.get("recipe", {}).get("encoder", "unknown"))),
            licence=self.licence.strip().rstrip(".") or ("see below" if self.notes.strip() else "not stated"),
            size=size,
        )

    def _scores(self) -> str:
        if not self.qualities:
            return "## Scores\n\nNot measured: the model was exported without `--data`."
        rows = [(name, f"{one.rows:,}", f"{one.em:.2%}", f"{one.em_s:.2%}") for name, one in self.qualities.items()]
        development = _DEVELOPMENT if self.data.split()[-1:] == [_EVAL] else ""
        table = _table(("", "rows", "EM", "EM-S"), rows)
        return _SCORES.format(data=self.data or "the given rows", development=development, table=table)

    def _confidence(self) -> str:
        if not self.qualities:
            return "## Confidence\n\nCalibration was not measured: the model was exported without `--data`."
        rows = [(name, f"{one.parse_error:.3f}", f"{one.leaf_error:.3f}") for name, one in self.qualities.items()]
        errors = _table(("", "error of parses", "error of leaves"), rows)
        name, quality = next(iter(self.qualities.items()))  # the others differ little
        rows = [(f"{least:g}", f"{share:.1%}", f"{right:.1%}") for least, share, right in quality.answered]
        answered = _table((f"`min_confidence` ({name})", "answered", "right"), rows)
        temperatures = self.decoding.temperatures
        return _CONFIDENCE.format(parse=temperatures.parse, leaf=temperatures.leaf, errors=errors, answered=answered)


def _encoder(name: str) -> str:
    if name.startswith(RANDOM):
        return f"the architecture {name.removeprefix(RANDOM)}, from random weights"
    return _ENCODERS.get(name, f"{name}, trained further, under the licence that it came with")


def _commands(parities: Iterable[str]) -> list[str]:
    """Return the commands that work with graphs, and those that work with weights."""
    found = {name.startswith("weights-") for name in parities}
    parse = ['treepiece parse --model FOLDER "your text"    # in Python: Parser.load(FOLDER)("your text")']
    train = ["treepiece train your-rows.tsv --output DIR --init FOLDER"]
    return (parse if False in found else []) + (train if True in found else [])


def _making(training: Mapping[str, Any]) -> str:
    """Return how the model was trained, as far as its bundle says: in one run, or in several in sequence."""
    runs = [*training.get("before", ()), training]
    parts = ["## How it was made"]
    if len(runs) > 1:
        parts.append(f"Trained in {len(runs)} runs, each starting from the one before.")
    return "\n\n".join([*parts, *map(_run, runs)])


def _run(training: Mapping[str, Any]) -> str:
    rows, recipe, validation = training.get("rows"), training.get("recipe"), training.get("validation")
    lines = [f"Trained on {rows:,} rows." if rows else "The number of training rows is not known."]
    if validation:
        lines.append(
            f"The best epoch was kept, number {validation['epoch']}{_averaging(training)}: "
            f"EM {validation['em']:.2%} on {validation['rows']:,} other rows."
        )
    if recipe:
        written = yaml.safe_dump(dict(recipe), sort_keys=False, default_flow_style=None, width=100)
        lines += ["The recipe, for `treepiece train --recipe`:", "", f"```yaml\n{written}```"]
    return "\n".join(lines)


def _averaging(training: Mapping[str, Any]) -> str:
    """Return a note on weight averaging; empty if the weights are those of a single model."""
    average = training.get("average")
    if not average:
        return ""
    return f", averaged over {average['models']} models (the first has weight {average['first_weight']:g})"


def _checks(parities: Mapping[str, Parity]) -> str:
    head = ("", "rows", "same tree", "largest difference in log-probability, where it is the same")
    rows = [
        (name, f"{one.rows:,}", f"{one.agreement:.2%}", f"{one.largest_difference:.1e}")
        for name, one in parities.items()
    ]
    return f"## Compared with the trained model in PyTorch\n\n{_table(head, rows)}"


def _labels(labels: Sequence[str]) -> str:
    lines = ["## Labels"]
    for kind, prefix in (("Intents", "IN:"), ("Slots", "SL:")):
        some = [label.removeprefix(prefix) for label in labels if label.startswith(prefix)]
        more = [f"and {len(some) - _MOST_LABELS:,} more in `config.json`"] if len(some) > _MOST_LABELS else []
        lines.append(f"{kind} ({len(some):,}): {', '.join([*some[:_MOST_LABELS], *more]) or 'none'}.")
    return "\n\n".join(lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
