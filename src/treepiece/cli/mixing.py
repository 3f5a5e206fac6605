"""`treepiece mix`: a model between trained ones and the one that they began from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from treepiece.bundle import MANIFEST, TRAINING
from treepiece.cli.console import progress, say_json, say_table
from treepiece.cli.extras import needs_training
from treepiece.cli.reading import BUNDLED_HELP, Data, Json, Split, Strict, load_rows
from treepiece.errors import BundleError, OptionError

_HELD_OUT = ("seed", "holdout", "most_held_out")
_SHARES = (0.0, 0.15, 0.3, 0.5)


def mix(
    data: Data,
    first: Annotated[
        str, typer.Option(metavar="DIR", help=f"The model that a run began from: its folder, {BUNDLED_HELP}")
    ],
    second: Annotated[
        list[Path],
        typer.Option(
            metavar="DIR",
            help="The model that the run ended with. Several runs that differ in `--branch`: once for each.",
        ),
    ],
    output: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write.")],
    share: Annotated[
        list[float] | None,
        typer.Option(
            help="How much of the first to take; given more than once, the best is kept.  "
            f"[default: {', '.join(map(str, _SHARES))}]"
        ),
    ] = None,
    split: Split = "train",
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Average the weights of a model and of others that were trained from it, which is often better than each.

    The best of several shares is kept, by exact match on the rows of DATA that the runs held out. Give the DATA that
    they were trained on.

    Examples:

    - `treepiece mix topv2 --first bundled --second model --output mixed`
    - `treepiece mix topv2 --first bundled --second branch1 --second branch2 --output mixed`
    """
    with needs_training("mix"):
        from treepiece.models.trained import load_model, save_model
        from treepiece.training.configs import read_config
        from treepiece.training.examples import make_examples
        from treepiece.training.mixing import best_mix
        from treepiece.training.preparation import hold_out
        from treepiece.training.recipe import Recipe

    shares = tuple(share or _SHARES)
    for one in shares:
        if not 0 <= one <= 1:
            raise OptionError(f"--share must be 0 to 1, got {one}")
    if (output / MANIFEST).exists():
        raise OptionError(f"{output}: there is a model already: give another --output")
    start, branches = load_model(first), [load_model(folder) for folder in second]
    recipes = [_recipe(folder, branch.facts) for folder, branch in zip(second, branches, strict=True)]
    for folder, settings in zip(second, recipes, strict=True):
        different = [name for name in _HELD_OUT if settings.get(name) != recipes[0].get(name)]
        if different:
            raise OptionError(
                f"{folder}: held out other rows than {second[0]}, its {different[0]} is {settings.get(different[0])}: "
                "mix runs of one recipe that differ in --branch"
            )
    rows = hold_out(load_rows(data, split=split, strict=strict), read_config(Recipe, recipes[0])).validation
    examples, _ = make_examples(rows, branches[0].subwords)
    with progress() as bars:
        task = bars.add_task("validating", total=len(shares) * len(examples), unit="rows")

        def on_rows(tried: float, done: int) -> None:
            bars.update(task, completed=shares.index(tried) * len(examples) + done)

        mixed = best_mix(start, branches, shares, examples, on_rows)
    save_model(output, mixed)
    validation = mixed.facts["validation"]
    summary = {
        "share": mixed.facts["mixed"]["share"],
        "validation_rows": validation["rows"],
        "validation_em": validation["em"],
    }
    if as_json:
        say_json({**summary, "output": str(output)})
    else:
        say_table(f"Model in {output}", list(summary.items()))


def _recipe(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a model was trained with."""
    settings = facts.get("recipe")
    if not isinstance(settings, dict):
        raise BundleError(f"{folder}: its {TRAINING} does not say with which recipe it was trained: train it again")
    return settings
