"""`treepiece train`: train a parser on rows of utterance and parse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treepiece.bundle import TRAINING, read_bundle
from treepiece.cli.console import note, say_json, say_table
from treepiece.cli.extras import needs_training
from treepiece.cli.interrupts import stop_on_interrupt
from treepiece.cli.reading import BUNDLED_HELP, Data, Json, Split, Strict, load_rows
from treepiece.cli.watching import Watcher
from treepiece.errors import CheckpointError, OptionError
from treepiece.shipped import find_weights

_INHERITED = {"encoder", "decoder", "units"}

if TYPE_CHECKING:
    from treepiece.training.preparation import Data as TrainingData
    from treepiece.training.recipe import Recipe


def train(
    data: Data,
    output: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write: a bundle, when it is done.")],
    model: Annotated[str | None, typer.Option(help="treepiece, ar or nar.  [default: treepiece]")] = None,
    recipe: Annotated[Path | None, typer.Option(metavar="FILE", help="How to train: a YAML file.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data; by default what the data needs.")] = None,
    batch: Annotated[int | None, typer.Option(help="Rows a step.")] = None,
    encoder: Annotated[str | None, typer.Option(help="minilm, a Hugging Face name or folder, random:NAME.")] = None,
    seed: Annotated[int | None, typer.Option(help="Same data, same seed, same model.")] = None,
    branch: Annotated[
        int | None,
        typer.Option(help="Of one seed, another order of the rows: for runs from one --init that are to be mixed."),
    ] = None,
    split: Split = "train",
    validation: Annotated[
        str | None, typer.Option(metavar="DATA", help="Rows to validate with; by default a part of DATA is held out.")
    ] = None,
    validation_split: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="Validate with this split of DATA, or of --validation.")
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help=f"Go on from a trained model, new labels are added: its folder, {BUNDLED_HELP} The weights of that "
            "are in a clone of the repository only.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in DIR from its last checkpoint.")
    ] = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Train a parser on DATA, rows of `utterance <tab> parse`.

    The model of the epoch with the best exact match on rows held out for validation is kept. Ctrl-C saves and stops;
    the same command with --resume goes on, also after a crash, and ends with the same model.

    Examples:

    - `treepiece train my.tsv --output model`
    - `treepiece train my.tsv --output model --init bundled`
    - `treepiece train topv2 --output model --recipe recipes/topv2-minilm-treepiece.yaml`
    - `torchrun --nproc-per-node 2 -m treepiece train my.tsv --output model`
    """
    with needs_training("train"):
        from treepiece.definition import ModelKind
        from treepiece.options import one_of
        from treepiece.training import run
        from treepiece.training.recipe import read_recipe

    given: dict[str, Any] = {"model": model, "epochs": epochs, "batch": batch, "encoder": encoder, "seed": seed}
    given["branch"] = branch
    changes = {name: value for name, value in given.items() if value is not None}
    if model is not None:
        one_of("--model", model, ModelKind)
    goes_on = resume and run.is_begun(output)
    if resume and run.is_finished(output):
        note(f"{output}: this training has come to its end; to train further use --init with another --output")
        _report(output, as_json)
        return
    if resume and not goes_on:
        note(f"{output}: there is no run to go on with: a new one begins")
    settings = run.planned_recipe(output) if goes_on else read_recipe(recipe, changes)
    if goes_on and (recipe is not None or changes):
        _check_same(settings, read_recipe(recipe, changes), set(vars(settings)) if recipe else set(changes), init)
    start = find_weights(init) if init is not None and not goes_on else None  # before any work is done
    rows = _training_data(data, split, validation, validation_split, strict, settings)
    fabric = run.make_fabric()
    with Watcher(is_shown=fabric.is_global_zero) as watcher, stop_on_interrupt() as should_stop:
        if not goes_on:
            run.begin_together(fabric, output, rows, settings, init=start, observer=watcher)
        result = run.go_on(output, rows, observer=watcher, should_stop=should_stop, fabric=fabric)
        run.leave(fabric)
    if not fabric.is_global_zero:
        return
    if not result.is_complete:
        note(f"stopped; the run is saved. Go on with the same command and --resume (folder {output})")
        raise typer.Exit(130)
    _report(output, as_json)


def _report(output: Path, as_json: bool) -> None:
    """Say what is known of the model in a folder."""
    bundle = read_bundle(output)
    facts = bundle.read_json(TRAINING)
    validation = facts["validation"]
    summary = {
        "model": bundle.kind,
        "rows": facts["rows"],
        "validation_rows": validation["rows"],
        "validation_em": validation["em"],
        "best_epoch": validation["epoch"],
    }
    if as_json:
        say_json({**summary, "output": str(output)})
    else:
        say_table(f"Model in {output}", list(summary.items()))


def _training_data(
    data: str, split: str, validation: str | None, validation_split: str | None, strict: bool, recipe: Recipe
) -> TrainingData:
    from treepiece.training.preparation import Data as Rows
    from treepiece.training.preparation import hold_out

    rows = load_rows(data, split=split, strict=strict)
    if validation is None and validation_split is None:
        return hold_out(rows, recipe)
    if validation is None and not Path(data).is_dir():
        raise OptionError(f"--validation-split: {data} is no folder of splits: name the rows with --validation DATA")
    return Rows(rows, load_rows(validation or data, split=validation_split or "eval", strict=strict))


def _check_same(planned: Recipe, given: Recipe, names: set[str], init: str | None) -> None:
    """Raise if what is given now differs from what the run began with, but for what a bundle to start from decides."""
    from treepiece.training.configs import write_config

    before, now = write_config(planned), write_config(given)
    for name in sorted(names - (_INHERITED if init else set())):
        if before[name] != now[name]:
            raise CheckpointError(
                f"--resume: the run began with {name} = {before[name]!r}, now it is {now[name]!r}: "
                "leave it out, or begin a new run in another folder"
            )
