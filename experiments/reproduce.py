"""The paper's tables and figures, and more: trains, evaluates, and writes docs/results.md.

Everything is made of parts. A part writes one JSON file when it is done and is not done again while its sources stay
the same; Ctrl-C at any time, and the same command continues. Groups of parts: tokenizer, figure3, rates, train, scores,
latency, bundled, extensions, merges, low-resource, ablations, report. --plan lists all parts.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from experiments import learning_rates, scoring, training
from experiments.parsers import ALWAYS, GREEDY, PARALLEL, load_parsers
from experiments.parts import Job, Json, Part, Store, run_parts, show_parts
from experiments.report import DOCS, RESULTS, write_report
from experiments.topv2 import (
    DOMAINS,
    SPIS,
    TARGETS,
    VARIABLE,
    add_topv2,
    check_files,
    file_digest,
    low_resource_file,
    rows_of_split,
    split_files,
)
from experiments.training import NAMES, Taken, read_settings
from experiments.variants import ABLATIONS, ALL_EXTENSIONS, BASE, EXTENSIONS, MERGES, MERGES_BASE, merged
from treepiece.bundle import BUNDLED, find_graphs
from treepiece.cli.console import note
from treepiece.data.reader import read_rows
from treepiece.data.rows import Row
from treepiece.errors import DataError, OptionError
from treepiece.runtime.sessions import Precision
from treepiece.trees.node import Node

ROOT = Path(__file__).parents[1]
GROUPS = (
    *("tokenizer", "figure3", "rates", "train", "scores", "latency", "bundled"),
    *("extensions", "merges", "low-resource", "ablations", "report"),
)
LOW_RESOURCE_KINDS = ("treepiece", "ar")
N_SCORED = 4000
_LARGEST_SHARE = 0.25


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_topv2(parser)
    add = parser.add_argument
    add("--work", type=Path, default=Path("runs/reproduction"), metavar="DIR", help="results  [default: %(default)s]")
    add("--plan", action="store_true", help="list the parts and how far they are, and do nothing")
    add("--only", nargs="+", default=[], metavar="PART", help="these parts or groups; `report` takes seconds")
    add("--seeds", type=int, default=1, metavar="N", help="models of each kind  [default: %(default)s]")
    add("--take", nargs="+", default=[], metavar="KIND=DIR", help="take this trained model instead of training one")
    add("--latency-rows", type=int, default=200, metavar="N", help="utterances  [default: %(default)s]")
    add("--ablation-rows", type=int, default=8000, metavar="N", help="rows  [default: %(default)s]")
    add("--ablation-epochs", type=int, default=2, metavar="N", help="[default: %(default)s]")
    add("--variants", nargs="+", default=list(ABLATIONS), metavar="NAME", help="ablations to run  [default: all]")
    add("--spis", nargs="+", type=int, default=SPIS, metavar="N", help="samples per intent and slot  [default: all]")
    add("--recipes", type=Path, default=ROOT / "recipes", metavar="DIR", help="recipes  [default: recipes]")
    add("--results", type=Path, default=RESULTS, metavar="FILE", help="published results  [default: docs/results.json]")
    add("--docs", type=Path, default=DOCS, metavar="DIR", help="where results.md is written  [default: docs]")


def run(args: Namespace) -> int:
    """Do what a command line asks for, and return the exit code."""
    _check(args)
    store, left = Store(args.work), list[str]()
    parts = plan_parts(args)
    chosen = choose_parts(parts, args.only)
    show_parts(chosen, parts, store)
    if args.plan:
        return 0
    try:
        with _terminate_as_interrupt():
            left = run_parts(chosen, parts, store, "python -m experiments reproduce --only")
    except KeyboardInterrupt:
        note("stopped; what is done is kept, and the same command continues")
        return 130
    if not args.only or "report" in args.only:
        note(f"{write_report(args.results, args.docs, store)}: written")
    if left:
        note(f"not done: {', '.join(left)}")
    return 1 if left else 0


def _check(args: Namespace) -> None:
    for name in ("seeds", "latency_rows", "ablation_rows", "ablation_epochs"):
        if getattr(args, name) < 1:
            raise OptionError(f"--{name.replace('_', '-')} must be 1 or more, got {getattr(args, name)}")
    for option, given, known in (("--spis", args.spis, SPIS), ("--variants", args.variants, ABLATIONS)):
        for one in given:
            if one not in known:
                raise OptionError(f"{option}: there is no {one!r}: there are {', '.join(map(repr, known))}")


def plan_parts(args: Namespace) -> list[Part]:
    """Return all parts but the report, in the order in which they are worth doing.

    Those that others need come before them: one model of each kind, then everything that is asked of those, and
    further seeds last.
    """
    check_files(args.topv2, split_files("train") + split_files("eval"))
    taken = _taken(args.take)
    seeds = {kind: choose_seeds([seed for other, seed in taken if other == kind], args.seeds) for kind in NAMES}

    def model_parts(turn: int) -> list[Part]:
        named = [(kind, seeds[kind][turn]) for kind in NAMES if turn < len(seeds[kind])]
        return [part for kind, seed in named for part in _model_parts(kind, seed, args, taken.get((kind, seed)))]

    parts = [*_counting_parts(args.topv2), *(_rates_part(kind, args) for kind in NAMES), *model_parts(0)]
    parts += [_latency_part({kind: few[0] for kind, few in seeds.items()}, args), _bundled_part(args.topv2)]
    if _wants(args, "extensions"):
        parts += [part for name in EXTENSIONS for part in _extension_parts(name, 0, args)]
        parts += [part for seed in range(1, args.seeds) for part in _extension_parts(ALL_EXTENSIONS, seed, args)]
    if _wants(args, "merges"):
        parts += [part for n in MERGES for part in _merges_parts(n, args)]
    if _wants(args, "low-resource"):
        files = [low_resource_file(one, split, k) for one in TARGETS for split in ("train", "valid") for k in args.spis]
        check_files(args.topv2, files)
        parts += [_source_part(kind, args) for kind in LOW_RESOURCE_KINDS]
        choices = itertools.product(range(args.seeds), sorted(args.spis), TARGETS, LOW_RESOURCE_KINDS)
        parts += [_target_part(*choice, args) for choice in choices]
    if _wants(args, "ablations"):
        parts += [_ablation_part(name, args) for name in args.variants]
    for turn in range(1, max(map(len, seeds.values()))):
        parts += model_parts(turn)
    return parts


def _wants(args: Namespace, group: str) -> bool:
    return not args.only or any(name == group or name.startswith(f"{group}-") for name in args.only)


def choose_seeds(taken: Sequence[int], n: int) -> list[int]:
    """Return the seeds of `n` models of a kind: those that are taken, and as many others as are still needed.

    >>> choose_seeds([3], 1), choose_seeds([1], 3), choose_seeds([], 2)
    ([3], [0, 1, 2], [0, 1])
    """
    others = [seed for seed in range(n + len(taken)) if seed not in taken]
    return sorted([*taken, *others[: max(0, n - len(taken))]])


def choose_parts(parts: Sequence[Part], only: Sequence[str]) -> list[Part]:
    """Return the parts that are asked for, by name or by group; without any names, all."""
    for name in only:
        if name not in GROUPS and not any(part.is_chosen(name) for part in parts):
            raise OptionError(f"--only {name}: there is no such part; groups are {', '.join(GROUPS)}; --plan lists all")
    return [part for part in parts if not only or any(part.is_chosen(name) for name in only)]


def _taken(choices: Sequence[str]) -> dict[tuple[str, int], Taken]:
    found: dict[tuple[str, int], Taken] = {}
    for choice in choices:
        taken = training.take(choice)
        before = found.setdefault((taken.kind, taken.seed), taken)
        if before is not taken:
            raise OptionError(
                f"--take {choice}: {before.folder} has seed {taken.seed} too: take models of different seeds"
            )
    return found


def _data(topv2: Path, *splits: str) -> Json:
    return {split: file_digest(topv2, split_files(split)) for split in splits}


def _counting_parts(topv2: Path) -> list[Part]:
    """Return the parts that need no model."""
    from experiments import passes, vocabulary

    def count_units(job: Job) -> Json:
        return {
            "vocabularies": job.piece("vocabularies", lambda: vocabulary.compare(topv2)),
            "times": job.piece("times", lambda: run_command("tokenizer", "--no-growth", topv2=topv2)),
        }

    data = {"data": _data(topv2, "train", "eval")}
    title = "count decoder passes of gold trees"
    return [
        Part("tokenizer", "train tree tokenizers and count units", data, count_units),
        Part("figure3", title, data, lambda _: passes.count(topv2, "eval")),
    ]


def run_command(name: str, *arguments: str, topv2: Path) -> Json:
    """Return the JSON object that an experiment prints in a process of its own; its standard error is shown."""
    shown = ["python", "-m", "experiments", name, *arguments, "--json"]
    environment = {**os.environ, VARIABLE: str(topv2.resolve())}
    done = subprocess.run(
        [sys.executable, *shown[1:]], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise DataError(f"`{shlex.join(shown)}` ended with exit code {done.returncode}: its message is above")
    value: Json = json.loads(done.stdout)
    return value


def _rates_part(kind: str, args: Namespace) -> Part:
    """Return the part that searches the learning rates of a kind of model, in small runs."""
    start = learning_rates.STARTS[kind]
    changes = {"validations": 1, "epochs": args.ablation_epochs}
    settings = read_settings(args.recipes / f"topv2-minilm-{kind}.yaml", changes)
    settings["optimizer"] = {**settings.get("optimizer", {}), "learning_rates": start}

    def tune(job: Job) -> Json:
        rows, scored = take_rows(rows_of_split(args.topv2, "train"), args.ablation_rows)

        def em(rates: Mapping[str, float]) -> float:
            name = "-".join(f"{module}-{rate:g}" for module, rate in rates.items())
            recipe = merged(settings, {"optimizer": {"learning_rates": dict(rates)}})
            model = job.folder / "models" / re.sub("[^a-z0-9-]", "_", name)
            run = job.piece(name, lambda: training.train_in(model, rows, recipe, validation=scored))
            return float(run["validation"]["history"][-1]["em"])

        found = learning_rates.search(start, em, learning_rates.FACTORS)
        return {"kind": kind, "rows": len(rows), "scored_rows": len(scored), "epochs": args.ablation_epochs, **found}

    inputs = {"recipe": settings, "rows": args.ablation_rows, "data": _data(args.topv2, "train")}
    return Part(f"rates-{kind}", f"search the learning rates of the {NAMES[kind]} parser", inputs, tune)


def _model_parts(kind: str, seed: int, args: Namespace, taken: Taken | None) -> list[Part]:
    """Return the parts that train a model of Table 1, or take one, and score it."""
    settings = read_settings(args.recipes / f"topv2-minilm-{kind}.yaml", {"seed": seed})
    return _trained_and_scored(kind, f"the {NAMES[kind]} parser", settings, args, taken)


def _extension_parts(name: str, seed: int, args: Namespace) -> list[Part]:
    """Return the parts that train the model of the paper with extensions, and score it."""
    settings = read_settings(args.recipes / "topv2-minilm-treepiece.yaml", {"seed": seed})
    title = f"TreePiece with extensions up to {name}"
    return _trained_and_scored(f"extensions-{name}", title, merged(settings, EXTENSIONS[name]), args)


def _merges_parts(n: int, args: Namespace) -> list[Part]:
    """Return the parts that train a model with another number of merges, and score it."""
    settings = read_settings(args.recipes / "topv2-minilm-treepiece.yaml", {"seed": 0})
    changed = merged(merged(settings, EXTENSIONS[MERGES_BASE]), {"tokenizer": {"merges": n}})
    return _trained_and_scored(f"merges-{n}", f"TreePiece with {n:,} merges", changed, args)


def _trained_and_scored(
    name: str, what: str, settings: Json, args: Namespace, taken: Taken | None = None
) -> list[Part]:
    """Return the parts that train a model, or take one, and score its graphs on the whole eval split.

    Those of Table 1 are named `train-KIND-SEED` and `scores-KIND-SEED`, others `NAME-SEED-train` and
    `NAME-SEED-scores`.
    """
    topv2, seed = args.topv2, settings["seed"]
    in_table = name in NAMES
    training_name, scores_name = (
        f"{step}-{name}-{seed}" if in_table else f"{name}-{seed}-{step}" for step in ("train", "scores")
    )

    def train(job: Job) -> Json:
        return {"seed": seed, "taken": False, **training.train_in(job.folder / "model", rows("train"), settings)}

    def use(_: Job) -> Json:
        assert taken is not None
        return {"seed": seed, "taken": True, **training.metadata_of(taken.folder)}

    def score(job: Job) -> Json:
        return _score_model(job, taken.folder if taken else job.folder_of(training_name) / "model", topv2)

    rows = partial(rows_of_split, topv2)
    if taken is None:
        title, inputs = f"train {what} on TOPv2", {"recipe": settings, **_data(topv2, "train")}
    else:
        title, inputs = f"take {what} as it was trained", {"taken": training.manifest_digest(taken.folder)}
    scored = f"export {what} of seed {seed} and score it on TOPv2 eval"
    data = {"data": _data(topv2, "train", "eval")}
    return [
        Part(training_name, f"{title}, seed {seed}", inputs, use if taken else train, keeps=True),
        Part(scores_name, scored, data, score, (training_name,), keeps=True),
    ]


def _score_model(job: Job, model: Path, topv2: Path) -> Json:
    """Return the scores of a model: its int8 graphs in all ways to search, its float graphs greedily.

    And in PyTorch what a reranker would write, if there is one.
    """
    folder = job.folder / "bundle"
    graphs = training.exported(model, folder, topv2)
    settings = _score_ways(job, folder, Precision.INT8, topv2)
    float_parser = next(iter(load_parsers(folder, Precision.FLOAT, 1).values()))
    rows = rows_of_split(topv2, "eval")
    name = f"float {GREEDY}"
    settings[name] = job.piece(name, lambda: scoring.score_rows(float_parser, rows, name))
    times = job.piece("times", lambda: scoring.time_parsers(load_parsers(folder, Precision.INT8, None), rows))
    written = job.piece("reranker writes", lambda: scoring.score_writer(model, rows))
    metadata = training.metadata_of(model)
    return {**metadata, "export": graphs, "settings": settings, "times": times, "reranker_writes": written}


def _score_ways(job: Job, folder: Path, precision: Precision, topv2: Path) -> dict[str, Json]:
    """Return the scores of a bundle in each way to search; the baselines search greedily, as in the paper."""
    rows = rows_of_split(topv2, "eval")
    settings = {}
    # One thread a row and a row a core does more than all threads for each row; only times want those.
    for way, parser in load_parsers(folder, precision, 1).items():
        name = f"{precision} {GREEDY if way == PARALLEL else way}"
        nbest = scoring.NBEST if way == ALWAYS else 1
        settings[name] = job.piece(name, partial(scoring.score_rows, parser, rows, name, nbest=nbest))
    return settings


def _latency_part(seeds: dict[str, int], args: Namespace) -> Part:
    needs = {kind: f"scores-{kind}-{seed}" for kind, seed in seeds.items()}

    def measure(job: Job) -> Json:
        bundles = [f"{kind}={(job.folder_of(name) / 'bundle').resolve()}" for kind, name in needs.items()]
        rows = "--rows", str(args.latency_rows)
        return {"seeds": seeds, "script": run_command("latency", *rows, "--bundles", *bundles, topv2=args.topv2)}

    inputs = {"data": _data(args.topv2, "eval"), "rows": args.latency_rows}
    return Part("latency", "time the trained parsers", inputs, measure, tuple(needs.values()))


def _bundled_part(topv2: Path) -> Part:
    """Return the part that scores the bundled model: the very files of the package."""
    folder = find_graphs(BUNDLED)

    def score(job: Job) -> Json:
        settings = _score_ways(job, folder, Precision.INT8, topv2)
        rows = rows_of_split(topv2, "eval")
        times = job.piece("times", lambda: scoring.time_parsers(load_parsers(folder, None, None), rows))
        return {**training.metadata_of(folder), "settings": settings, "times": times}

    inputs = {"data": _data(topv2, "eval"), "model": training.manifest_digest(folder)}
    return Part("bundled", "score the bundled model on TOPv2 eval", inputs, score)


def _source_part(kind: str, args: Namespace) -> Part:
    """Return the part that trains on the domains that have no low-resource splits."""
    settings = read_settings(args.recipes / f"low-resource-source-{kind}.yaml", {})

    def train(job: Job) -> Json:
        rows = [row for row in rows_of_split(args.topv2, "train") if row.domain not in TARGETS]
        return training.train_in(job.folder / "model", rows, settings)

    inputs = {"recipe": settings, "data": _data(args.topv2, "train"), "targets": list(TARGETS)}
    title = f"train the {NAMES[kind]} parser on {len(DOMAINS) - len(TARGETS)} domains"
    return Part(f"low-resource-{kind}-source", title, inputs, train, keeps=True)


def _target_part(seed: int, spis: int, domain: str, kind: str, args: Namespace) -> Part:
    """Return the part that continues the training of a source model with a few rows of a new domain, and scores it.

    The best epoch is chosen on the validation rows that belong to the few. In TOPv2 these are rows of the eval split:
    6 % of the domain's with 10 samples per intent and slot, most of them with 1,000. So the scores on the other eval
    rows, which nothing was chosen on, are kept beside those on all.
    """
    settings = read_settings(args.recipes / f"low-resource-target-{kind}.yaml", {"seed": seed} if seed else {})
    files = [low_resource_file(domain, split, spis) for split in ("train", "valid")]
    source = f"low-resource-{kind}-source"

    def adapt(job: Job) -> Json:
        train, valid = (list(read_rows(args.topv2 / name)) for name in files)
        folder, init = job.folder / "model", job.folder_of(source) / "model"
        training.train_in(folder, train, settings, validation=valid, init=init)
        rows = list(read_rows(args.topv2 / f"{domain}_eval.tsv"))
        return {
            "kind": kind,
            "domain": domain,
            "spis": spis,
            "rows": len(train),
            "validation_rows": len(valid),
            "scores": _score_target(folder, rows, valid),
        }

    inputs = {"recipe": settings, "data": file_digest(args.topv2, [*files, f"{domain}_eval.tsv"])}
    title = f"train the {NAMES[kind]} parser on {domain}, {spis} samples per intent and slot, seed {seed}"
    return Part(f"low-resource-{kind}-{domain}-{spis}-{seed}", title, inputs, adapt, (source,))


def _score_target(folder: Path, rows: Sequence[Row], validation: Sequence[Row]) -> Json:
    """Return the scores of a model in PyTorch on all rows, and on those that it was not validated with."""
    from treepiece.models.trained import load_model

    examples, outcomes = scoring.predict_rows(load_model(folder), rows)
    seen = {row.frame for row in validation}
    fresh = [outcome for example, outcome in zip(examples, outcomes, strict=True) if example.frame not in seen]
    return {
        **scoring.scores_to_json(outcomes),
        "unparsable": len(rows) - len(examples),
        "fresh": scoring.scores_to_json(fresh) if fresh else None,
    }


def _ablation_part(variant: str, args: Namespace) -> Part:
    """Return the part that trains and scores a variant of the TreePiece recipe.

    All variants see the same rows of the train split for the same number of epochs, and are scored on the same other
    rows of the train split after the last epoch. The eval split is not touched.
    """
    settings = read_settings(args.recipes / "bundled-treepiece.yaml", {**BASE, "epochs": args.ablation_epochs})
    settings = merged(settings, ABLATIONS[variant])

    def train(job: Job) -> Json:
        rows, scored = take_rows(rows_of_split(args.topv2, "train"), args.ablation_rows)
        metadata = training.train_in(job.folder / "model", rows, settings, validation=scored)
        *_, last = metadata["validation"]["history"]
        greedy = _score_greedily(job.folder / "model", scored, {row.skeleton for row in rows})
        return {
            "variant": variant,
            "rows": len(rows),
            "epochs": args.ablation_epochs,
            "seed": metadata["recipe"]["seed"],
            "scored_rows": len(scored),
            "em": last["em"],
            "em_s": last["em_s"],
            "rows_per_second": metadata["rows_per_second"],
            "greedy": greedy,
        }

    inputs = {"recipe": settings, "rows": args.ablation_rows, "data": _data(args.topv2, "train")}
    name = f"ablations-{re.sub(r'[^a-z0-9]+', '-', variant.lower())}"
    return Part(name, f"train the variant {variant!r} on {args.ablation_rows:,} rows", inputs, train)


def _score_greedily(folder: Path, rows: Sequence[Row], seen: Collection[Node]) -> Json:
    """Return the scores of a model in PyTorch without reranking, by whether training had the skeleton."""
    from treepiece.models.trained import load_model

    trained = load_model(folder)
    trained.decoding = replace(trained.decoding, rerank_threshold=0.0)
    scores = scoring.scores_to_json(scoring.predict_rows(trained, rows)[1], seen)
    return {name: scores[name] for name in ("em", "passes", "by_seen")}


def take_rows(rows: Sequence[Row], n: int) -> tuple[list[Row], list[Row]]:
    """Return `n` random rows of the train split to learn from, and others to score on."""
    n_scored = min(N_SCORED, int(_LARGEST_SHARE * len(rows)))
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    chosen = [rows[place] for place in order]
    return chosen[n_scored : n_scored + n], chosen[:n_scored]


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C."""

    def interrupt(_: int, __: FrameType | None) -> Any:  # noqa: ANN401
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
