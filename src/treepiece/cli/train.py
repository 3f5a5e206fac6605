"""`treepiece train`: train a parser on rows of utterance and parse."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treepiece.cli.arguments import BUNDLED_HELP, Data, Json, Split, Strict, load_rows
from treepiece.cli.console import ProgressBars, note, say_json, say_table, stop_on_interrupt
from treepiece.errors import OptionError
from treepiece.extras import needs_extra

if TYPE_CHECKING:
    from treepiece.training.run import TrainingResult


def train(
    data: Data,
    output: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write; it becomes a bundle.")],
    kind: Annotated[str | None, typer.Option(help="treepiece, ar or nar.  [default: treepiece]")] = None,
    recipe: Annotated[Path | None, typer.Option(metavar="FILE", help="The recipe, a YAML file.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the data.  [default: as many as the data needs]")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows per step.")] = None,
    encoder: Annotated[str | None, typer.Option(help="minilm, a Hugging Face name or folder, random:NAME.")] = None,
    seed: Annotated[int | None, typer.Option(help="Same data, same seed, same model.")] = None,
    shuffle_seed: Annotated[
        int | None,
        typer.Option(help="Another order of the rows with the same seed, for runs from the same --init to average."),
    ] = None,
    split: Split = "train",
    validation: Annotated[
        str | None, typer.Option(metavar="DATA", help="Rows to validate on; by default a part of DATA is held out.")
    ] = None,
    validation_split: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="Validate on this split of DATA, or of --validation.")
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help=f"Start from a trained model and add new labels: its folder, {BUNDLED_HELP} The weights of that model "
            "are in a clone of the repository only.",
        ),
    ] = None,
    out_of_scope: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Requests to refuse, one per line.  [default: requests about other things]"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in DIR from its last checkpoint.")] = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Train a parser on DATA, rows of `utterance <tab> parse`.

    The model of the epoch with the best exact match on rows held out for validation is kept. Ctrl-C saves and stops;
    the same command with --resume continues, also after a crash, and ends with the same model.

    Examples:

    - `treepiece train my.tsv --output model`
    - `treepiece train my.tsv --output model --init bundled`
    - `treepiece train topv2 --output model --recipe recipes/topv2-minilm-treepiece.yaml`
    - `torchrun --nproc-per-node 2 -m treepiece train my.tsv --output model`
    """
    from treepiece import api

    with needs_extra("train", "train"):
        from treepiece.training import run
        from treepiece.training.recipe import read_recipe

    given: dict[str, Any] = {"kind": kind, "epochs": epochs, "batch_size": batch_size, "encoder": encoder}
    given |= {"seed": seed, "shuffle_seed": shuffle_seed}
    settings = read_recipe(recipe, {name: value for name, value in given.items() if value is not None})
    if resume and run.is_finished(output):
        note(f"{output}: this training is complete; to train further use --init with another --output")
        _report(run.read_result(output), as_json=as_json)
        return
    rows = load_rows(data, split=split, strict=strict)
    if validation is None and validation_split is not None:
        if not Path(data).is_dir():
            raise OptionError(f"--validation-split: {data} is no folder of splits: name the rows with --validation")
        validation = data
    validation_rows = None
    if validation is not None:
        validation_rows = load_rows(validation, split=validation_split or "eval", strict=strict)
    is_first = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun has started
    with ProgressBars(is_shown=is_first) as bars, stop_on_interrupt() as should_stop:
        result = api.train(
            rows,
            output,
            recipe=settings,
            validation=validation_rows,
            init=init,
            out_of_scope=out_of_scope,
            resume=resume,
            progress=bars,
            should_stop=should_stop,
        )
    if not is_first:
        return
    if not result.is_complete:
        note(f"stopped; the run is saved. To continue, add --resume to the same command (folder {output})")
        raise typer.Exit(130)
    _report(result, as_json=as_json)


def _report(result: TrainingResult, *, as_json: bool) -> None:
    """Print a summary of a trained model."""
    summary = asdict(result) | {"folder": str(result.folder)}
    if as_json:
        say_json(summary)
    else:
        del summary["folder"], summary["is_complete"]
        say_table(f"Model in {result.folder}", list(summary.items()))
