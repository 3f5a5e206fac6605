"""The parts that ask how few rows of a new domain are enough.

A source model is trained on the other six domains, once for each kind. From there it goes on with a few rows of a
domain that it has never seen, and is scored on all eval rows of that domain. Epochs and learning rates are chosen on
the validation rows that belong to the few.

In TOPv2 those validation rows are rows of the eval split: 6 % of the domain's with 10 samples per intent and slot, most
of them with 1,000. So the scores on the other eval rows, which nothing was chosen on, are kept beside those on all.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reproduction.data import (
    DOMAINS,
    TARGETS,
    file_digest,
    low_resource_file,
    rows_of_file,
    rows_of_split,
    split_files,
)
from reproduction.part import Job, Part
from reproduction.sources import KINDS
from reproduction.store import Json
from reproduction.training import make_recipe, read_settings, train_in

if TYPE_CHECKING:
    from treepiece.training.recipe import Recipe

LOW_KINDS = ("treepiece", "ar")
RATES = (1.0,)
"""Factors of the recipe's learning rates that are tried, unless others are asked for. The decoders of a source model
can write trees already, and large steps make them forget; but the embeddings of labels that they have never seen start
from nothing, and with few rows there are few steps."""


@dataclass(frozen=True)
class Few:
    """A few rows of a domain: samples per intent and slot, and whether training starts from the other domains."""

    kind: str
    domain: str
    spis: int
    from_source: bool

    @property
    def name(self) -> str:
        """The name of the part."""
        start = "" if self.from_source else "-from-scratch"
        return f"low-resource-{self.kind}-{self.domain}-{self.spis}{start}"


def source_name(kind: str) -> str:
    """Return the name of the part that trains a source model."""
    return f"low-resource-{kind}-source"


def wanted_files(spis: tuple[int, ...]) -> list[str]:
    """Return the low-resource files that are needed."""
    return [low_resource_file(domain, split, k) for domain in TARGETS for split in ("train", "valid") for k in spis]


def source_part(kind: str, topv2: Path, recipes: Path) -> Part:
    """Return the part that trains on the domains that are not targets."""
    settings = read_settings(recipes / f"low-resource-source-{kind}.yaml", {})

    def work(job: Job) -> Json:
        from treepiece.training.preparation import hold_out

        rows = [row for row in rows_of_split(topv2, "train") if row.domain not in TARGETS]
        recipe = make_recipe(settings)
        return train_in(job.model_folder(), hold_out(rows, recipe), recipe)

    return Part(
        source_name(kind),
        f"train the {KINDS[kind]} parser on {len(DOMAINS) - len(TARGETS)} domains",
        {"recipe": settings, "data": file_digest(topv2, split_files("train")), "targets": list(TARGETS)},
        work,
        keeps=True,
    )


def target_part(few: Few, rates: tuple[float, ...], topv2: Path, recipes: Path) -> Part:
    """Return the part that trains on a few rows of a domain, with each learning rate, and scores the best."""
    settings = read_settings(recipes / f"low-resource-target-{few.kind}.yaml", {})
    files = [low_resource_file(few.domain, split, few.spis) for split in ("train", "valid")]

    def work(job: Job) -> Json:
        return _adapt(job, few, rates, settings, topv2)

    return Part(
        few.name,
        f"train the {KINDS[few.kind]} parser on {few.domain}, {few.spis} SPIS"
        + ("" if few.from_source else ", from scratch"),
        {
            "recipe": settings,
            "rates": list(rates),
            "data": file_digest(topv2, [*files, f"{few.domain}_eval.tsv"]),
        },
        work,
        needs=(source_name(few.kind),) if few.from_source else (),
    )


def _adapt(job: Job, few: Few, rates: tuple[float, ...], settings: Json, topv2: Path) -> Json:
    from treepiece.training.preparation import Data

    train, valid = (rows_of_file(topv2, low_resource_file(few.domain, split, few.spis)) for split in ("train", "valid"))
    init = job.needed_model(source_name(few.kind)) if few.from_source else None
    tried = []
    for rate in rates:
        folder = job.model_folder(str(rate))
        facts = train_in(folder, Data(train, valid), scale_rates(make_recipe(settings), rate), init=init)
        tried.append({"rate": rate, "em": facts["validation"]["em"], "epoch": facts["validation"]["epoch"]})
    best = max(tried, key=lambda one: float(one["em"]))  # of equals the first
    return {
        "kind": few.kind,
        "domain": few.domain,
        "spis": few.spis,
        "from_source": few.from_source,
        "rows": len(train),
        "validation_rows": len(valid),
        "tried": tried,
        "rate": best["rate"],
        "scores": job.piece("scores", lambda: _score(job.model_folder(str(best["rate"])), few, topv2)),
    }


def scale_rates(recipe: Recipe, factor: float) -> Recipe:
    """Return a recipe with all learning rates multiplied by a factor."""
    from dataclasses import replace

    from treepiece.training.recipe import MODULES

    rates = {module: factor * recipe.learning_rate(module) for module in MODULES[recipe.model]}
    return replace(recipe, optimizer=replace(recipe.optimizer, learning_rates=rates))


def _score(model: Path, few: Few, topv2: Path) -> Json:
    """Return the scores of a model in PyTorch on all eval rows of a domain, and on those not validated with."""
    from reproduction.summary import summarise
    from treepiece.cli.console import progress
    from treepiece.models.trained import load_model
    from treepiece.training.examples import make_examples
    from treepiece.training.prediction import predict

    trained = load_model(model)
    examples, left_out = make_examples(rows_of_file(topv2, f"{few.domain}_eval.tsv"), trained.subwords)
    with progress() as bars:
        task = bars.add_task("scoring", total=len(examples), unit="rows")
        outcomes = predict(trained.model, examples, on_rows=lambda done: bars.update(task, completed=done))
    chosen_on = {row.frame for row in rows_of_file(topv2, low_resource_file(few.domain, "valid", few.spis))}
    fresh = [outcome for example, outcome in zip(examples, outcomes, strict=True) if example.frame not in chosen_on]
    return {
        **summarise(outcomes),
        "unparsable": len(left_out),
        "fresh": summarise(fresh) if fresh else None,
    }
