"""`treepiece export`: a trained model as a bundle for the runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from treepiece.bundle import MANIFEST
from treepiece.cli.console import note, progress, say_json
from treepiece.cli.extras import needs_training
from treepiece.cli.reading import BUNDLED_HELP, Json, Split, Strict, load_rows
from treepiece.data.rows import Row
from treepiece.errors import OptionError
from treepiece.options import one_of
from treepiece.shipped import find_weights

if TYPE_CHECKING:
    from treepiece.export.exporting import Exported
    from treepiece.text import SubwordTokenizer
    from treepiece.training.examples import Example

_TOY_ROWS = 200


def export(
    checkpoint: Annotated[
        str, typer.Argument(metavar="MODEL", help=f"The folder of a model that `treepiece train` wrote, {BUNDLED_HELP}")
    ],
    output: Annotated[Path, typer.Option(metavar="BUNDLE", help="The folder to write.")],
    data: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Rows with parses, not those of training, to check and calibrate with."),
    ] = None,
    split: Split = "eval",
    as_float: Annotated[bool, typer.Option("--float/--no-float", help="Write graphs in single precision.")] = True,
    as_int8: Annotated[bool, typer.Option("--int8/--no-int8", help="Write graphs in 8 bits.")] = True,
    weights: Annotated[
        str,
        typer.Option(
            metavar="none|float|half",
            help="Keep PyTorch's weights too, for `train --init`; half are rounded, and half as large.",
        ),
    ] = "none",
    licence: Annotated[
        str, typer.Option(metavar="TEXT", help="A line for the model card: the data and their licence.")
    ] = "",
    notes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markdown for the model card: data, licences, limits, whatever you know."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a bundle that is there.")] = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Write the model as graphs that `treepiece parse` and `Parser` run without PyTorch.

    The graphs must answer as PyTorch does, or nothing is written. With --data, they are also scored, and confidences
    are calibrated. BUNDLE/README.md is a model card: read it, and say with --notes what it cannot know.

    Examples:

    - `treepiece export model --output bundle --data my-eval.tsv`
    - `treepiece export model --output bundle --data topv2 --split eval --no-float`
    - `treepiece export model --output small --weights half --no-float --no-int8`: to train on from, without graphs
    """
    with needs_training("export"):
        from treepiece.export.exporting import ExportOptions, export_model
        from treepiece.export.weights import Weights
        from treepiece.models.trained import load_model
        from treepiece.runtime.graphs import Precision
        from treepiece.training.examples import make_examples

    if (output / MANIFEST).exists() and not overwrite:
        raise OptionError(f"{output}: there is a bundle already: give another --output, or --overwrite to replace it")
    wanted = [precision for precision, is_on in zip(Precision, (as_float, as_int8), strict=True) if is_on]
    kept = one_of("--weights", weights, Weights)
    options = ExportOptions(tuple(wanted), kept, licence, _read_notes(notes) if notes else "")
    source = find_weights(checkpoint)
    trained = load_model(source)
    examples: list[Example]
    if data is None:
        note("no --data: the graphs are compared with PyTorch on made-up utterances, and confidences not calibrated")
        examples = _toy_examples(trained.subwords)
    else:
        examples, left_out = make_examples(load_rows(data, split=split, strict=strict), trained.subwords)
        for reason in left_out[:3]:
            note(f"not used: {reason}")
    with progress() as bars:
        name = f"{Path(data).name} {split}" if data and Path(data).is_dir() else data or ""
        exported = export_model(source, output, examples, _Bars(bars), options, data=name)
    if as_json:
        say_json(_summary(output, exported))
    else:
        _draw(output, exported, has_graphs=bool(wanted))


def _read_notes(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OptionError(f"--notes {file}: cannot be read: {reason}: give a Markdown file") from None


def _toy_examples(subwords: SubwordTokenizer) -> list[Example]:
    from treepiece.data.toy.generate import toy_frames
    from treepiece.training.examples import make_examples

    rows = [Row(frame.skeleton, frame) for frame in toy_frames(_TOY_ROWS)]
    return make_examples(rows, subwords)[0]


class _Bars:
    """Shows the stages of an export as progress bars."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = bars.add_task("loading", total=None, unit="")

    def on_stage(self, name: str, total: int) -> None:
        self._bars.remove_task(self._task)
        self._task = self._bars.add_task(name, total=total, unit="")

    def on_step(self, done: int) -> None:
        self._bars.update(self._task, completed=done)


def _summary(output: Path, exported: Exported) -> dict[str, object]:
    return {
        "output": str(output),
        "megabytes": _megabytes(output),
        "parity": {name: {**vars(one), "agreement": one.agreement} for name, one in exported.parities.items()},
        "quality": {name: one.to_json() for name, one in exported.qualities.items()},
    }


def _megabytes(folder: Path) -> float:
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 1)


def _draw(output: Path, exported: Exported, *, has_graphs: bool) -> None:
    table = Table("precision", "same tree as PyTorch", "EM", "EM-S", "calibration error", box=box.SIMPLE)
    for name, parity in exported.parities.items():
        quality = exported.qualities.get(name)
        scores = ("-", "-", "-")
        if quality is not None:
            errors = f"{quality.parse_error_before:.3f} -> {quality.parse_error_after:.3f}"
            scores = (f"{quality.em:.4f}", f"{quality.em_s:.4f}", errors)
        table.add_row(name, f"{parity.same_trees:,} of {parity.rows:,}", *scores)
    Console().print(table)
    hint = f'try it: treepiece parse --model {output} "your text"'
    if not has_graphs:
        hint = f"go on from it: treepiece train DATA --output DIR --init {output}"
    note(f"{output}: {_megabytes(output)} MB; {hint}")
