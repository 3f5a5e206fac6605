"""docs/results.md from docs/results.json: seconds, and neither data nor PyTorch.

    python -m experiments report [--results FILE] [--docs DIR]

`python -m experiments reproduce` puts new results into the file and then writes the page.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from experiments.parts import Record, Store
from experiments.report.details import ablations, few_rows, passes, tokenizer
from experiments.report.markdown import listed, section, wrap
from experiments.report.models import extensions, merges, rates
from experiments.report.quality import bundled, compared, confidence, groups, headline, precisions, searching
from experiments.report.results import Results, average_of
from experiments.report.speed import latency
from treepiece.bundle import replace_files
from treepiece.cli.console import note
from treepiece.errors import DataError

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "results.json"
PAGE = "results.md"
FIGURES = "figures"
_SECTIONS = {
    "train": "Table 1",
    "bundled": "the bundled model",
    "extensions": "extensions",
    "merges": "the number of merges",
    "rates": "learning rates",
    "scores": "scores",
    "latency": "latency",
    "figure3": "Figure 3",
    "tokenizer": "the tokenizer",
    "low-resource": "few rows of a new domain",
    "ablations": "variants of the recipe",
}
_INTRODUCTION = """\
# Results

The tables and figures of the paper, and more, as this repository makes them: [how](#how-this-was-made). EM is the
share of utterances whose tree is right in labels, order and words, EM-S the share of right skeletons. Where there are
several models of a kind, trained with different seeds, a figure is their mean, and the range is in brackets. Unless
stated otherwise, scores are of the whole TOPv2 eval split, graphs in 8 bits, greedy search. The eval split is our
development set: models and recipes have been compared on it often, so its scores flatter a little. This page is
generated: do not edit it."""
_HOW = """\
```sh
make reproduce                                  # everything; Ctrl-C at any time, the same command continues
make reproduce ARGS="--seeds 3"                 # three models of each kind, as in the paper
make reproduce ARGS="--take treepiece=DIR"      # with a model that is already trained
```

The results that this page shows are in `docs/results.json`, each with the command that makes it, the commit, the
machine, and checksums of its data. `python -m experiments report` writes this page from them;
[Experiments](experiments.md) explains how to make them again. Results have the names of today even where an older
commit made them.

Whatever these runs chose or fitted, they did on rows of the train split, except on the [low-resource
splits](#a-few-rows-of-a-new-domain). The best epoch of a model is the one with the best EM on rows held out from it
{rows}. Graphs were compared with PyTorch and the temperatures of confidences fitted on the same rows. The eval split
was only parsed to be scored, but earlier models had been scored on it while the recipes were written. The recipes are
`recipes/topv2-minilm-*.yaml` and `recipes/low-resource-*.yaml`."""


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="[default: docs/results.json]")
    parser.add_argument("--docs", type=Path, default=DOCS, metavar="DIR", help="where results.md is written")


def run(args: Namespace) -> None:
    """Write the page."""
    note(f"{write_report(args.results, args.docs)}: written")


def read_results(file: Path) -> dict[str, Record]:
    """Return the published results by the name of their part; none if there is no file."""
    try:
        values = json.loads(file.read_bytes())
        return {name: Record.from_json(value) for name, value in values.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{file}: not a file of published results") from None


def write_results(file: Path, records: Mapping[str, Record]) -> None:
    """Write results, one on each line, so that a difference shows which of them changed."""
    lines = [f"{json.dumps(name)}: {json.dumps(asdict(record))}" for name, record in sorted(records.items())]
    replace_files(file.parent, {file.name: ("{\n" + ",\n".join(lines) + "\n}\n").encode()})


def write_report(file: Path, docs: Path, store: Store | None = None) -> Path:
    """Publish the results of a store, write the page and its figures, and return where the page is.

    A part that the store has no result of keeps the published one, on whatever machine it was made.
    """
    records = read_results(file)
    if store is not None and (new := store.records()):
        records |= new
        write_results(file, records)
    results, figures = Results(records), docs / FIGURES
    sections = [
        wrap(_INTRODUCTION),
        _warnings(results),
        headline(results),
        bundled(results),
        extensions(results),
        merges(results, figures),
        compared(results),
        groups(results),
        searching(results),
        latency(results),
        precisions(results),
        confidence(results, figures),
        passes(results, figures),
        tokenizer(results),
        few_rows(results, figures),
        ablations(results),
        rates(results),
        section("How this was made", _HOW.format(rows=_held_out(results)), _models(results), _machines(results)),
    ]
    text = "\n\n".join(filter(None, sections)) + "\n"
    try:
        replace_files(docs, {PAGE: text.encode()})
    except OSError as error:
        raise DataError(f"{docs / PAGE}: cannot be written: {error.strerror}") from None
    return docs / PAGE


def _warnings(results: Results) -> str:
    """Return what is missing, and which results do not belong together."""
    missing = [part for part in _SECTIONS if not any(f"{name}-".startswith(f"{part}-") for name in results.records)]
    outdated = results.outdated()
    return "\n\n".join(
        [
            *([wrap(f"Not run yet: {listed([_SECTIONS[part] for part in missing])}.")] if missing else []),
            *(
                [wrap(f"Out of date, made from results that have been replaced: {listed(outdated)}.")]
                if outdated
                else []
            ),
        ]
    )


def _held_out(results: Results) -> str:
    rows = sorted({int(model["validation"].get("rows", 0)) for _, _, model in results.trained()})
    return f"({listed([f'{n:,}' for n in rows])} rows)" if rows else ""


def _models(results: Results) -> str:
    lines = []
    for name, seed, model in results.trained():
        validation, recipe = model["validation"], model["recipe"]
        lines.append(
            f"- {name}, seed {seed}: {'taken as it was trained' if model['taken'] else 'trained here'}; "
            f"{model['rows']:,} rows, epoch {validation['epoch']} of {recipe['epochs']}{average_of(model)}, "
            f"EM {100 * validation['em']:.2f} % on the rows held out."
        )
    return "\n".join(["Models:", "", *lines]) if lines else ""


def _machines(results: Results) -> str:
    lines = []
    for machine, names in results.machines():
        libraries = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        cores = f"{machine['cores']} core{'s' * (machine['cores'] != 1)}"
        lines.append(f"- {cores} of {machine['cpu']}, {libraries}: {len(names)} part{'s' * (len(names) != 1)}.")
    return "\n".join(["Machines:", "", *lines]) if lines else ""
