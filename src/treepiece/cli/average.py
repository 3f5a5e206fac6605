"""`treepiece average`: one model from several, by averaging their weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treepiece.bundle import MANIFEST, TRAINING
from treepiece.checks import fraction
from treepiece.cli.arguments import BUNDLED_HELP, Json, Split, Strict, load_rows
from treepiece.cli.console import ProgressBars, say_json, say_table
from treepiece.errors import BundleError, OptionError
from treepiece.extras import needs_extra

if TYPE_CHECKING:
    from treepiece.models.trained import TrainedModel

_HELD_OUT = ("seed", "holdout", "max_held_out")
_WEIGHTS = (0.0, 0.15, 0.3, 0.5)


def average(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="FIRST OTHER...",
            help="A model, and one or more that were trained from it with --init and differ in --shuffle-seed. Each is "
            f"a folder that `treepiece train` wrote, {BUNDLED_HELP}",
        ),
    ],
    output: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write.")],
    data: Annotated[
        str, typer.Option(metavar="DATA", help="The training data of the models; the rows that they held out decide.")
    ],
    first_weight: Annotated[
        list[float] | None,
        typer.Option(
            metavar="W",
            help="The weight of FIRST; the others share the rest. Given more than once, the best is kept.  "
            f"[default: {', '.join(map(str, _WEIGHTS))}]",
        ),
    ] = None,
    split: Split = "train",
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Average the weights of a model and of others that were trained from it; the result is often better than each.

    The best of several weights is kept, by exact match on the rows of DATA that the runs held out.

    Examples:

    - `treepiece average bundled model --data my.tsv --output averaged`
    - `treepiece average start run1 run2 --data topv2 --output averaged`
    """
    with needs_extra("average", "train"):
        from treepiece.data.examples import make_examples
        from treepiece.models.trained import load_model, save_model
        from treepiece.training.averaging import best_average
        from treepiece.training.preparation import hold_out
        from treepiece.training.recipe import make_recipe

    if len(models) < 2:
        raise OptionError(f"average takes two models or more, got {len(models)}: name those trained from {models[0]}")
    weights = [fraction("--first-weight", weight) for weight in first_weight or _WEIGHTS]
    if (output / MANIFEST).exists():
        raise OptionError(f"{output}: there is a model already: give another --output")
    first, *others = map(load_model, models)
    recipe = _common_recipe(dict(zip(models[1:], others, strict=True)))
    rows = hold_out(load_rows(data, split=split, strict=strict), make_recipe(recipe)).validation
    examples, _ = make_examples(rows, others[0].subwords)
    with ProgressBars("rows") as bars:
        averaged = best_average(first, others, weights, examples, bars)
    save_model(output, averaged)
    validation = averaged.metadata["validation"]
    summary = {
        "first_weight": averaged.metadata["average"]["first_weight"],
        "validation_rows": validation["rows"],
        "validation_em": validation["em"],
    }
    if as_json:
        say_json({**summary, "folder": str(output)})
    else:
        say_table(f"Model in {output}", list(summary.items()))


def _common_recipe(models: Mapping[str, TrainedModel]) -> dict[str, Any]:
    """Return the recipe that models were trained with; raise if they held out different rows."""
    first = next(iter(models))
    common: dict[str, Any] = models[first].metadata.get("recipe", {})
    for folder, trained in models.items():
        recipe = trained.metadata.get("recipe")
        if not isinstance(recipe, dict):
            raise BundleError(f"{folder}: its {TRAINING} has no recipe: train the model again")
        different = [name for name in _HELD_OUT if recipe.get(name) != common.get(name)]
        if different:
            raise OptionError(
                f"{folder}: held out other rows than {first}, its {different[0]} is {recipe.get(different[0])}: "
                "average runs of one recipe that differ in --shuffle-seed"
            )
    return common
