"""`treepiece export`: write a trained model as a bundle for the runtime."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treepiece.bundle import MANIFEST, find_weights, read_bundle
from treepiece.checks import one_of
from treepiece.cli.arguments import BUNDLED_HELP, Json, Split, Strict, load_rows
from treepiece.cli.console import ProgressBars, note, say_json, say_table
from treepiece.data.examples import Example, make_examples
from treepiece.definition import load_subwords
from treepiece.errors import OptionError
from treepiece.extras import needs_extra

if TYPE_CHECKING:
    from treepiece.export.exporter import Exported
    from treepiece.text import SubwordTokenizer


def export(
    model: Annotated[str, typer.Option(metavar="MODEL", help=f"A folder that `treepiece train` wrote, {BUNDLED_HELP}")],
    output: Annotated[Path, typer.Option(metavar="BUNDLE", help="The folder to write.")],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Rows with parses that the model was not trained on, to score the graphs with."
        ),
    ] = None,
    split: Split = "eval",
    calibration: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Rows whose utterances calibrate --int8.  [default: toy utterances]",
            show_default=False,
        ),
    ] = None,
    calibration_split: Annotated[
        str, typer.Option(metavar="SPLIT", help="Which files of the folder in --calibration.")
    ] = "train",
    as_float: Annotated[bool, typer.Option("--float/--no-float", help="Write graphs in single precision.")] = True,
    as_int8: Annotated[bool, typer.Option("--int8/--no-int8", help="Write graphs in 8 bits.")] = True,
    weights: Annotated[
        str,
        typer.Option(
            metavar="none|float|half",
            help="Keep the PyTorch weights too, for `train --init`; half precision halves their size.",
        ),
    ] = "none",
    licence: Annotated[
        str, typer.Option(metavar="TEXT", help="One line for the model card: the data and its licence.")
    ] = "",
    notes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markdown for the model card: data, licences, limits."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing bundle.")] = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Write a trained model as ONNX graphs.

    `treepiece parse`, `treepiece serve` and `Parser` run them without PyTorch. They must give the same parses as
    PyTorch, or nothing is written. --data scores them; nothing is fitted to its rows. BUNDLE/README.md is a model card:
    read it, and add missing information with --notes.

    Examples:

    - `treepiece export --model model --output bundle --data my-eval.tsv`
    - `treepiece export --model model --output bundle --data topv2 --split eval --calibration topv2 --no-float`
    - `treepiece export --model model --output small --weights half --no-float --no-int8`: weights alone, to train from
    """
    with needs_extra("export", "train"):
        from treepiece.export.exporter import ExportOptions, Weights, export_model
        from treepiece.runtime.sessions import Precision

    if (output / MANIFEST).exists() and not overwrite:
        raise OptionError(
            f"{output}: there is a bundle already: name another --output, or give --overwrite to replace it"
        )
    wanted = [precision for precision, is_on in zip(Precision, (as_float, as_int8), strict=True) if is_on]
    kept = one_of("--weights", weights, Weights)
    options = ExportOptions(tuple(wanted), kept, licence, _read_notes(notes) if notes else "")
    source = find_weights(model)
    subwords = load_subwords(read_bundle(source, check=False))
    examples = _read_examples(data, subwords, split=split, strict=strict)
    shown = [one.subwords for one in _read_examples(calibration, subwords, split=calibration_split, strict=strict)]
    if not examples:
        note("no --data: the graphs are compared with PyTorch on toy utterances, and not scored")
    name = f"{Path(data).name} {split}" if data and Path(data).is_dir() else data or ""
    with ProgressBars() as bars:
        exported = export_model(source, output, examples, data=name, calibration=shown, options=options, progress=bars)
    megabytes = round(sum(file.stat().st_size for file in output.rglob("*") if file.is_file()) / 1e6, 1)
    if as_json:
        parity = {name: {**vars(one), "agreement": one.agreement} for name, one in exported.parities.items()}
        quality = {name: asdict(one) for name, one in exported.qualities.items()}
        say_json({"output": str(output), "megabytes": megabytes, "parity": parity, "quality": quality})
        return
    _draw(exported)
    hint = f'try it: treepiece parse --model {output} "your text"'
    if not wanted:
        hint = f"train from it: treepiece train DATA --output DIR --init {output}"
    note(f"{output}: {megabytes} MB; {hint}")


def _read_examples(data: str | None, subwords: SubwordTokenizer, *, split: str, strict: bool) -> list[Example]:
    if data is None:
        return []
    examples, left_out = make_examples(load_rows(data, split=split, strict=strict), subwords)
    for reason in left_out[:3]:
        note(f"not used: {reason}")
    return examples


def _read_notes(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OptionError(f"--notes {file}: cannot be read: {reason}: give a Markdown file") from None


def _draw(exported: Exported) -> None:
    rows = []
    for name, parity in exported.parities.items():
        quality = exported.qualities.get(name)
        scores = (f"{quality.em:.4f}", f"{quality.em_s:.4f}", quality.parse_error) if quality else (None, None, None)
        rows.append((name, f"{parity.same_trees:,} of {parity.rows:,}", *scores))
    say_table("", rows, head=("precision", "same tree as PyTorch", "EM", "EM-S", "calibration error"))
