"""The model card of a bundle: what it is, how good it is, where it fails, what it was made from, and how.

What can be known from the model and the export stands in every card. What only people know, such as where the data
come from and which licence they have, comes from `licence`, one line, and `notes`, Markdown that goes in as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import yaml

from treepiece.definition import Definition
from treepiece.export.checking import Parity, Quality
from treepiece.models.encoder import MINILM, RANDOM

_NAMES = {"treepiece": "A TreePiece", "ar": "An autoregressive", "nar": "A non-autoregressive"}
_ENCODERS = {
    MINILM: "[sentence-transformers/all-MiniLM-L6-v2]"
    "(https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), Apache-2.0, trained further"
}
"""Encoders that we offer by a name of ours, with the notice that their licence asks for."""
_MOST_LABELS = 100

_INTRODUCTION = """\
# {name} semantic parser

Turns an utterance into a tree of intents and slots. Made with treepiece {version}.

- Encoder: {encoder}.
- Data and licence: {licence}.
- {size}."""

_USE = """\
## Use

`FOLDER` is the one that this file is in.

```sh
{commands}
```"""

_SCORES = """\
## Scores

On {data}. EM is the share of trees that are right in labels, order and words; EM-S is the share of
those that are right but for the words.

{table}"""

_CONFIDENCE = """\
## Confidence

A confidence is p to the power of 1 / temperature, where p is the probability that the model gives its
answer. The temperatures are those under which the answers on every other of the rows above are most
probable. The errors (expected calibration error, 15 bins) are those of the rows in between.

{table}"""

_ANSWERED = """\
What comes of asking for a confidence with `min_confidence`, on the rows in between: the share of texts
that are answered, and the share of those answers that is right.

{table}"""

_LIMITS = """\
## Limits

- It knows the intents and slots of its training data only. Asked for anything else, or in another
  language, it answers with one of them all the same. `min_confidence` refuses what it doubts itself.
- Scores and confidences hold for texts like those that they were measured on.
- A text of more than {longest:,} subwords is refused."""


@dataclass(frozen=True)
class Card:
    """What a card is written from; parities and qualities are by precision, those of weights as `weights-half`."""

    definition: Definition
    training: Mapping[str, Any]
    longest: int
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
            _confidence(self.qualities),
            _LIMITS.format(longest=self.longest),
            self.notes.strip(),
            _making(self.training),
            _checks(self.parities),
            _labels(self.definition.labels),
        ]
        return "\n\n".join(filter(None, sections)) + "\n"

    def _introduction(self) -> str:
        tokenizer = self.definition.tokenizer
        units = "" if tokenizer is None else f", {len(tokenizer.units):,} units (subtrees that it writes in one step)"
        return _INTRODUCTION.format(
            name=_NAMES[self.definition.kind],
            version=version("treepiece"),
            encoder=_encoder(str(self.training.get("recipe", {}).get("encoder", "unknown"))),
            licence=self.licence.strip().rstrip(".") or ("see below" if self.notes.strip() else "not stated"),
            size=f"{len(self.definition.labels):,} labels{units}",
        )

    def _scores(self) -> str:
        if not self.qualities:
            return "## Scores\n\nNot measured: it was exported without `--data`."
        rows = [(name, f"{one.rows:,}", f"{one.em:.2%}", f"{one.em_s:.2%}") for name, one in self.qualities.items()]
        return _SCORES.format(data=self.data, table=_table(("", "rows", "EM", "EM-S"), rows))


def _encoder(name: str) -> str:
    if name.startswith(RANDOM):
        return f"the architecture {name.removeprefix(RANDOM)}, from random weights"
    return _ENCODERS.get(name, f"{name}, trained further, under the licence that it came with")


def _commands(parities: Iterable[str]) -> list[str]:
    """Return what can be done with graphs, and what with weights."""
    found = {name.startswith("weights-") for name in parities}
    parse = ['treepiece parse --model FOLDER "your text"    # in Python: Parser.load(FOLDER)("your text")']
    train = ["treepiece train your-rows.tsv --output DIR --init FOLDER"]
    return (parse if False in found else []) + (train if True in found else [])


def _confidence(qualities: Mapping[str, Quality]) -> str:
    if not qualities:
        return "## Confidence\n\nThe probability that the model gives its answer, not calibrated."
    head = ("", "temperature of parses", "error before, after", "temperature of leaves", "error before, after")
    rows = [
        (
            name,
            f"{one.temperatures.parse:.2f}",
            f"{one.parse_error_before:.3f}, {one.parse_error_after:.3f}",
            f"{one.temperatures.leaf:.2f}",
            f"{one.leaf_error_before:.3f}, {one.leaf_error_after:.3f}",
        )
        for name, one in qualities.items()
    ]
    texts = [_CONFIDENCE.format(table=_table(head, rows)), _answered(qualities)]
    return "\n\n".join(filter(None, texts))


def _answered(qualities: Mapping[str, Quality]) -> str:
    """Return what `min_confidence` does, of the first precision that it was measured for: they differ little."""
    for name, one in qualities.items():
        if one.answered:
            rows = [(f"{least:g}", f"{share:.1%}", f"{right:.1%}") for least, share, right in one.answered]
            return _ANSWERED.format(table=_table((f"`min_confidence`, {name}", "answered", "right"), rows))
    return ""


def _making(training: Mapping[str, Any]) -> str:
    """Return how the model was trained, as far as its bundle says: in one run, or in several from one another."""
    runs = [*training.get("before", ()), training]
    lines = ["## How it was made", ""]
    if len(runs) > 1:
        lines += [f"Trained in {len(runs)} runs, each from what the one before had reached.", ""]
    return "\n".join([*lines, "\n\n".join(map(_run, runs))])


def _run(training: Mapping[str, Any]) -> str:
    rows, recipe, validation = training.get("rows"), training.get("recipe"), training.get("validation")
    lines = [f"Trained on {rows:,} rows." if rows else "Trained on rows that nobody counted."]
    if validation:
        lines.append(
            f"Of its epochs the best was kept, number {validation['epoch']}{_mixing(training)}: "
            f"EM {validation['em']:.2%} on {validation['rows']:,} other rows."
        )
    if recipe:
        written = yaml.safe_dump(dict(recipe), sort_keys=False, default_flow_style=None, width=100)
        lines += ["The recipe, for `treepiece train --recipe`:", "", f"```yaml\n{written}```"]
    return "\n".join(lines)


def _mixing(training: Mapping[str, Any]) -> str:
    """Return what was done with the best epoch before it was scored, if anything."""
    mixed = training.get("mixed", {})
    share, n = mixed.get("share"), mixed.get("branches", 1)
    if share is None:
        return ""
    others = f", and averaged over {n} runs from one start" if n > 1 else ""
    return others + (
        f", and mixed with what the run began from ({1 - share:g} of it, {share:g} of that)" if share else ""
    )


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
