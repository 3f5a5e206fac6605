"""The results of the parts as the sections of the page ask for them."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.store import Json, Record, Store, digest

KINDS = {"treepiece": "TreePiece", "ar": "AR", "nar": "NAR"}
SHIPPED = "int8 greedy"
"""What is scored where nothing else is said: the graphs that are shipped, greedy search."""
SECOND_LOOKS = {"judged": "int8 judged in doubt", "ranked": "int8 ranked in doubt"}
"""What a parser that has a judge or a ranker does by default, the first of these that it can: the temperatures of its
confidences are fitted to that."""


class Results:
    """All results in some folders; where several have a part, that of the first of them counts."""

    def __init__(self, *stores: Store) -> None:
        found: dict[str, Record] = {}
        for store in reversed(stores):
            found |= {name: record for name in store.names() if (record := store.read(name))}
        self.records = dict(sorted(found.items()))

    def get(self, name: str) -> Json | None:
        """Return the result of a part; None if there is none yet."""
        record = self.records.get(name)
        return record.result if record else None

    def group(self, prefix: str) -> dict[str, Json]:
        """Return the results of the parts whose names begin so."""
        return {name: record.result for name, record in self.records.items() if name.startswith(f"{prefix}-")}

    def seeds(self, kind: str) -> list[int]:
        """Return the seeds of the models of a kind that have been scored."""
        return sorted(int(name.rpartition("-")[2]) for name in self.group(f"scores-{kind}"))

    def models(self, kind: str) -> list[Json]:
        """Return the scores of all models of a kind, in the order of their seeds."""
        return [self.records[f"scores-{kind}-{seed}"].result for seed in self.seeds(kind)]

    def scores(self, kind: str, setting: str = SHIPPED) -> list[Json]:
        """Return the scores of the models of a kind in one setting; those that were not scored so are left out."""
        return [model["settings"][setting] for model in self.models(kind) if setting in model["settings"]]

    def defaults(self, kind: str) -> list[Json]:
        """Return the scores of the models of a kind as they parse by default: with a second look, if they can."""
        return [default_of(model) for model in self.models(kind) if SHIPPED in model["settings"]]

    def numbers(self, kind: str, name: str, setting: str = SHIPPED) -> list[float]:
        """Return one of the scores of each model of a kind."""
        return [float(scores[name]) for scores in self.scores(kind, setting)]

    def parts_of(self, kind: str, grouping: str, name: str, score: str) -> list[float]:
        """Return a score of each model on a group of rows, such as a domain."""
        groups = [scores[grouping].get(name) for scores in self.scores(kind)]
        return [float(group[score]) for group in groups if group]

    def group_names(self, grouping: str) -> dict[str, int]:
        """Return the groups of rows and how many rows each has; those of all models are the same rows."""
        for kind in KINDS:
            for scores in self.scores(kind):
                return {name: int(group["rows"]) for name, group in scores[grouping].items()}
        return {}

    def epochs(self, kind: str) -> list[int]:
        """Return for how many epochs each model of a kind was trained, in all its runs, until the one that was kept."""
        return [epochs_of(model) for model in self.models(kind)]

    def outdated(self) -> list[str]:
        """Return the parts that were made from results which have been replaced since."""
        return [
            name
            for name, record in self.records.items()
            if any(
                needed in self.records and digest(self.records[needed].result) != checksum
                for needed, checksum in record.needs.items()
            )
        ]

    def machines(self) -> list[tuple[Json, Sequence[str]]]:
        """Return the machines that parts ran on, and the parts of each."""
        found: dict[str, tuple[Json, list[str]]] = {}
        for name, record in self.records.items():
            found.setdefault(digest(record.machine), (record.machine, []))[1].append(name)
        return list(found.values())


def default_of(model: Json) -> Json:
    """Return the scores of a model as it parses by default."""
    names = (*SECOND_LOOKS.values(), SHIPPED)
    found: Json = next(model["settings"][name] for name in names if name in model["settings"])
    return found


def epochs_of(model: Json) -> int:
    """Return for how many epochs a model was trained, in all its runs one after the other.

    >>> epochs_of({"before": [{"validation": {"epoch": 4}}], "validation": {"epoch": 2}})
    6
    """
    return sum(int(run["validation"].get("epoch", 0)) for run in (*model.get("before", ()), model))


def mixed_with(result: Json) -> str:
    """Return what is to be said of a model that is a mix: of several runs, and of what they began from.

    >>> mixed_with({"mixed": {"share": 0.3}})
    ', mixed with the model that it began from (0.7 : 0.3)'
    >>> mixed_with({"mixed": {"share": 0, "branches": 2}})
    ', averaged over 2 runs from one start'
    >>> mixed_with({"mixed": None})
    ''
    """
    mixed = result.get("mixed") or {}
    share, n = mixed.get("share", 0), mixed.get("branches", 1)
    others = f", averaged over {n} runs from one start" if n > 1 else ""
    return others + (f", mixed with the model that it began from ({1 - share:.2g} : {share:g})" if share else "")
