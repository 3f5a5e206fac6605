"""`treepiece mix`: a model between a trained one and the one that it began from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from treepiece.bundle import MANIFEST, TRAINING
from treepiece.cli.console import progress, say_json, say_table
from treepiece.cli.extras import needs_training
from treepiece.cli.reading import BUNDLED_HELP, Data, Json, Split, Strict, load_rows
from treepiece.errors import BundleError, OptionError

_SHARES = (0.15, 0.3, 0.5)


def mix(
    data: Data,
    first: Annotated[
        str, typer.Option(metavar="DIR", help=f"The model that a run began from: its folder, {BUNDLED_HELP}")
    ],
    second: Annotated[Path, typer.Option(metavar="DIR", help="The model that the run ended with.")],
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
    """Average the weights of two models, one trained from the other, which is often better than either.

    The best of several shares is kept, by exact match on the rows of DATA that the second model's run held out. Give
    the DATA that it was trained on.

    Example: `treepiece mix topv2 --first bundled --second model --output mixed`
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
    models = load_model(first), load_model(second)
    settings = models[1].facts.get("recipe")
    if not isinstance(settings, dict):
        raise BundleError(f"{second}: its {TRAINING} does not say with which recipe it was trained: train it again")
    rows = hold_out(load_rows(data, split=split, strict=strict), read_config(Recipe, settings)).validation
    examples, _ = make_examples(rows, models[1].subwords)
    with progress() as bars:
        task = bars.add_task("validating", total=len(shares) * len(examples), unit="rows")

        def on_rows(tried: float, done: int) -> None:
            bars.update(task, completed=shares.index(tried) * len(examples) + done)

        mixed = best_mix(*models, shares, examples, on_rows)
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
