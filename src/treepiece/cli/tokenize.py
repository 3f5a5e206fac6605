"""`treepiece tokenizer`: train and use a tree tokenizer."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from treepiece.cli.arguments import Data, Json, Split, Strict, load_rows
from treepiece.cli.console import ProgressBars, note, say, say_json, say_table, wants_colour
from treepiece.errors import OptionError, TreeParseError, UnitError
from treepiece.tokenizer.assembly import Order
from treepiece.tokenizer.coverage import evaluate_tokenizer
from treepiece.tokenizer.em import EmMethod
from treepiece.tokenizer.learning import Expansion, TokenizerConfig
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.brackets import format_brackets
from treepiece.trees.drawing import outline
from treepiece.trees.flat_json import tree_to_rows

app = typer.Typer(help="Train and use a tree tokenizer.", no_args_is_help=True)

Folder = Annotated[Path, typer.Option("--tokenizer", metavar="DIR", help="The folder that `tokenizer train` wrote.")]
UnitOrder = Annotated[Order, typer.Option(help="The order in which units are written.")]

_DEFAULT = TokenizerConfig()
_count = partial(typer.Option, metavar="N")
_amount = partial(typer.Option, metavar="X")


@app.command()
def train(
    data: Data,
    output: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write.")],
    split: Split = "train",
    merges: Annotated[int, _count(help="The number of merges.")] = _DEFAULT.merges,
    em: Annotated[EmMethod, typer.Option(help="The E-step: best partition, sampled, or exact.")] = _DEFAULT.em,
    em_iterations: Annotated[int, _count(help="The most iterations of EM.")] = _DEFAULT.em_iterations,
    em_epsilon: Annotated[
        float, _amount(help="EM stops if an iteration improves the objective by less.")
    ] = _DEFAULT.em_epsilon,
    expansion: Annotated[Expansion, typer.Option(help="Which placeholder patterns to add.")] = _DEFAULT.expansion,
    samples: Annotated[
        int, _count(help="Samples per tree, for sampled EM and the paper's expansion.")
    ] = _DEFAULT.samples,
    theta: Annotated[float, _amount(help="Sharpness of the samples of the paper's expansion.")] = _DEFAULT.theta,
    min_count: Annotated[
        int, _count(help="The least count of a pattern in the expansions default and whole.")
    ] = _DEFAULT.min_count,
    seed: Annotated[int, _count(help="The same data and seed give the same tokenizer.")] = _DEFAULT.seed,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Train a tokenizer on the trees of DATA.

    Examples:

    - `treepiece tokenizer train topv2 --output tokenizer`
    - `treepiece data toy | treepiece tokenizer train - --output tokenizer --merges 100`
    """
    config = TokenizerConfig(merges, em, em_iterations, em_epsilon, expansion, samples, theta, min_count, seed)
    rows = load_rows(data, split=split, strict=strict)
    with ProgressBars() as bars:
        tokenizer = TreePieceTokenizer.train((row.skeleton for row in rows), config, bars.update)
    tokenizer.save(output)
    report = tokenizer.report
    assert report is not None  # set by training
    if report.n_merges < merges:
        note(f"stopped after {report.n_merges} of {merges} merges: no mergeable pair of units is left")
    summary = {
        "trees": len(rows),
        "labels": report.n_labels,
        "merges": report.n_merges,
        "base_units": report.base_units,
        "em_iterations": len(report.em_objectives),
        "em_objective": report.em_objectives[-1],
        "units": len(tokenizer.units),
    }
    if as_json:
        say_json(summary)
    else:
        say_table(f"Tokenizer in {output}", list(summary.items()))


@app.command()
def encode(
    tokenizer: Folder,
    data: Data = "-",
    split: Split = "train",
    order: UnitOrder = Order.PRE,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Split trees into units.

    Draws each tree and lists the ids of its units; the number next to a node is the position of its unit in that list.
    --json prints one object per tree with `line`, `ids` and `units`; the last two are null if the tokenizer does not
    know a label.

    Example: `echo "[IN:A [SL:B ] ]" | treepiece tokenizer encode --tokenizer tokenizer`
    """
    loaded = TreePieceTokenizer.load(tokenizer)
    rows = load_rows(data, split=split, strict=strict)
    encodings = loaded.encode_batch((row.skeleton for row in rows), order=order, missing_ok=True)
    colour = wants_colour()
    for row, unit_ids in zip(rows, encodings, strict=True):
        if as_json:
            units = None if unit_ids is None else [str(loaded.units[unit_id]) for unit_id in unit_ids]
            say_json({"line": row.line, "ids": unit_ids, "units": units})
        elif unit_ids is None:
            try:
                loaded.encode(row.skeleton)  # which says why
            except UnitError as error:
                say(f"{outline(row.skeleton)}\ncannot be encoded: {error}\n")
        else:
            say(outline(row.skeleton, loaded.places(unit_ids, order=order), colour=colour))
            say(f"ids: {' '.join(map(str, unit_ids))}\n")


@app.command()
def decode(
    tokenizer: Folder,
    ids: Annotated[
        list[int] | None, typer.Argument(help="The ids of the units; without any, reads one tree per line from a pipe.")
    ] = None,
    order: UnitOrder = Order.PRE,
    as_json: Json = False,
) -> None:
    """Assemble units into a tree.

    --json prints one object per tree: `text` (null for labels that bracket text cannot hold) and `tree`, a list of
    nodes.

    Examples:

    - `treepiece tokenizer decode --tokenizer tokenizer 3 7`
    - `treepiece tokenizer encode --tokenizer T data.tsv --json | treepiece tokenizer decode --tokenizer T`
    """
    loaded = TreePieceTokenizer.load(tokenizer)
    colour = wants_colour()
    for unit_ids, where in [(ids, "")] if ids else _read_ids(sys.stdin):
        try:
            tree = loaded.decode(unit_ids, order=order)
        except UnitError as error:
            raise UnitError(f"{where}{error}") from None
        if as_json:
            text = None
            with suppress(TreeParseError):
                text = format_brackets(tree, any_label=True)
            say_json({"text": text, "tree": tree_to_rows(tree)})
        else:
            say(outline(tree, loaded.places(unit_ids, order=order), colour=colour) + "\n")


@app.command()
def show(
    tokenizer: Folder,
    top: Annotated[int, _count(help="The number of units.")] = 20,
    as_json: Json = False,
) -> None:
    """Draw the most probable units.

    `_` is a placeholder, to which another unit attaches. --json prints one object per unit: `id`, `unit`,
    `probability`, and `placeholders`, the parent label of each.

    Example: `treepiece tokenizer show --tokenizer tokenizer --top 5`
    """
    if top < 1:
        raise OptionError(f"--top must be 1 or more, got {top}")
    loaded = TreePieceTokenizer.load(tokenizer)
    for unit in loaded.units[:top]:
        if as_json:
            say_json(
                {
                    "id": unit.id,
                    "unit": str(unit),
                    "probability": unit.probability,
                    "placeholders": unit.placeholders,
                }
            )
        else:
            say(f"unit {unit.id}, probability {unit.probability:.5f}\n{outline(unit.tree, quote=False)}\n")


@app.command()
def evaluate(
    data: Data, tokenizer: Folder, split: Split = "eval", strict: Strict = False, as_json: Json = False
) -> None:
    """Count the units that trees need.

    Also counts trees that cannot be encoded, and failed round trips.

    Example: `treepiece tokenizer evaluate --tokenizer tokenizer topv2 --split eval`
    """
    loaded = TreePieceTokenizer.load(tokenizer)
    result = evaluate_tokenizer(loaded, [row.skeleton for row in load_rows(data, split=split, strict=strict)])
    if as_json:
        say_json(result.to_json())
    else:
        say_table(f"Tokenizer {tokenizer} on {data}", list(result.to_json().items()))


def _read_ids(lines: Iterable[str] | None) -> Iterator[tuple[list[int], str]]:
    """Yield the ids of each line that is not blank, and where they were found."""
    for number, line in enumerate(lines or (), start=1):
        found = re.search(r'"ids": \[(.*?)\]', line)  # what `encode --json` writes
        words = (found[1] if found else line).replace(",", " ").split()
        if not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
            raise UnitError(f"line {number}: expected unit ids separated by blanks, got {line.strip()!r:.60}")
        if words:
            yield [int(word) for word in words], f"line {number}: "
