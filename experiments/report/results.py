"""The published results as the sections of the page ask for them, and the figures of the paper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from experiments.parts import Json, Record, digest
from experiments.plotting import KINDS

GREEDY = "int8 greedy"
"""What is scored unless stated otherwise: the graphs that are shipped, greedy search, as in the paper."""
DEFAULT = "int8 default"
"""What a parser with a reranker does by default; the temperatures of its confidences are fitted to that."""


class Column(NamedTuple):
    """A column of Table 1 of the paper: percent, and milliseconds."""

    em: float
    em_s: float
    decoding: float
    inference: float


PAPER = {
    "treepiece": Column(86.78, 89.14, 33, 74),
    "ar": Column(86.99, 89.13, 152, 196),
    "nar": Column(86.22, 88.44, 27, 68),
}
"""Of "TreePiece: Faster Semantic Parsing via Tree Tokenization" (Wang, Shrivastava and Livshits, 2023)."""


class Results:
    """All results."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self.records = dict(sorted(records.items()))

    def get(self, name: str) -> Json | None:
        """Return the result of a part; None if there is none."""
        record = self.records.get(name)
        return record.result if record else None

    def group(self, prefix: str) -> dict[str, Json]:
        """Return the results of the parts whose names begin so."""
        return {name: record.result for name, record in self.records.items() if name.startswith(f"{prefix}-")}

    def trained(self) -> Iterator[tuple[str, int, Json]]:
        """Yield the trained models: the name of the kind, the seed, and the metadata."""
        for kind, name in KINDS.items():
            for model in sorted(self.group(f"train-{kind}").values(), key=lambda model: int(model["seed"])):
                yield name, model["seed"], model

    def seeds(self, kind: str) -> list[int]:
        """Return the seeds of the models of a kind that have been scored."""
        return sorted(int(name.rpartition("-")[2]) for name in self.group(f"scores-{kind}"))

    def models(self, kind: str) -> list[Json]:
        """Return the scores of all models of a kind, in the order of their seeds."""
        return [self.records[f"scores-{kind}-{seed}"].result for seed in self.seeds(kind)]

    def scores(self, kind: str, setting: str = GREEDY) -> list[Json]:
        """Return the scores of the models of a kind in one setting; those that were not scored so are left out."""
        return [model["settings"][setting] for model in self.models(kind) if setting in model["settings"]]

    def defaults(self, kind: str) -> list[Json]:
        """Return the scores of the models of a kind as they parse by default."""
        return [default_of(model) for model in self.models(kind) if GREEDY in model["settings"]]

    def family(self, name: str) -> tuple[list[Json], list[Json]]:
        """Return the scores of models that differ in their seeds, and the metadata of their training."""
        return tuple(  # type: ignore[return-value]  # two steps
            [record.result for part, record in self.records.items() if re.fullmatch(rf"{name}-\d+-{step}", part)]
            for step in ("scores", "train")
        )

    def table_1(self, kind: str) -> tuple[list[Json], list[Json]]:
        """Return the same for the models of a kind in Table 1."""
        return self.models(kind), [model for name, _, model in self.trained() if name == KINDS[kind]]

    def numbers(self, kind: str, name: str, setting: str = GREEDY) -> list[float]:
        """Return one of the scores of each model of a kind."""
        return [float(scores[name]) for scores in self.scores(kind, setting)]

    def numbers_of_group(self, kind: str, grouping: str, name: str, score: str) -> list[float]:
        """Return a score of each model on a group of rows, such as a domain."""
        groups = [scores[grouping].get(name) for scores in self.scores(kind)]
        return [float(group[score]) for group in groups if group]

    def group_names(self, grouping: str) -> dict[str, int]:
        """Return the groups of rows and how many rows each has; those of all models are the same rows."""
        all_scores = (scores for kind in KINDS for scores in self.scores(kind))
        return {name: int(group["rows"]) for name, group in next(all_scores, {grouping: {}})[grouping].items()}

    def outdated(self) -> list[str]:
        """Return the parts that were made from results which have been replaced since."""
        digests = {name: digest(record.result) for name, record in self.records.items()}
        return [
            name
            for name, record in self.records.items()
            if any(digests.get(needed, checksum) != checksum for needed, checksum in record.needs.items())
        ]

    def machines(self) -> list[tuple[Json, Sequence[str]]]:
        """Return the machines that are known, and the parts that ran on each."""
        found: dict[str, tuple[Json, list[str]]] = {}
        for name, record in self.records.items():
            if record.machine:
                found.setdefault(digest(record.machine), (record.machine, []))[1].append(name)
        return list(found.values())


def default_of(model: Json) -> Json:
    """Return the scores of a model as it parses by default."""
    settings = model["settings"]
    scores: Json = settings.get(DEFAULT, settings[GREEDY])
    return scores


def epochs_of(model: Json) -> int:
    """Return for how many epochs a model was trained, in all its runs one after the other.

    >>> epochs_of({"before": [{"validation": {"epoch": 4}}], "validation": {"epoch": 2}})
    6
    """
    return sum(int(run["validation"].get("epoch", 0)) for run in (*model.get("before", ()), model))


def average_of(model: Json) -> str:
    """Return what is to be said of a model whose weights are an average.

    >>> average_of({"average": {"first_weight": 0.3, "models": 3}})
    ', averaged: 0.3 the first model, 0.7 the mean of 2 runs that started from it'
    >>> average_of({"average": None})
    ''
    """
    average = model.get("average")
    if not average:
        return ""
    weight, n = average["first_weight"], average["models"] - 1
    others = f"the mean of {n} runs that started from it" if n > 1 else "a run that started from it"
    return f", averaged: {weight:g} the first model, {1 - weight:.2g} {others}"
