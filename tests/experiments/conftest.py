"""A reproduction of toy size: data in the format of TOPv2, recipes for very small models, and graphs made before."""

import json
import shutil

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'treepiece[bench]'")
pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: pip install 'treepiece[bench]'")

import yaml
from tiny import SETTINGS, once

from experiments import learning_rates, scoring, timing, training
from experiments import reproduce as command
from experiments.__main__ import main
from experiments.topv2 import DOMAINS, TARGETS
from experiments.variants import EXTENSIONS
from treepiece.data.toy import toy_rows

HEADER = "domain\tutterance\t{}\n"
KINDS = ("treepiece", "ar", "nar")
ASKED = [
    "--ablation-rows",
    "40",
    "--ablation-epochs",
    "1",
    "--variants",
    "no reranker",
    "batch size 64",
    "--spis",
    "10",
]


def write_rows(path, rows, column="semantic_parse"):
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEADER.format(column) + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def write_topv2(folder, n_train=160, n_eval=40):
    """Write rows of the toy grammar under the names of TOPv2's domains; as there, validation rows are eval rows."""
    for split, seed, n in (("train", 0, n_train), ("eval", 1, n_eval)):
        rows = {domain: [] for domain in DOMAINS}
        for number, (domain, *row) in enumerate(toy_rows(n, seed)):
            name = ("alarm", "event")[number % 2] if domain == "home" else domain
            rows[name].append([name, *row])
        for domain in DOMAINS:
            write_rows(folder / f"{domain}_{split}.tsv", rows[domain])
        name, few = {"train": ("train", 3), "eval": ("valid", 2)}[split]
        for domain in TARGETS:
            path = folder / "low_resource_splits" / f"{domain}_{name}_10spis.tsv"
            write_rows(path, rows[domain][:few], "seqlogical")  # TOPv2 has another header there
    return folder


def write_recipes(folder, encoder):
    folder.mkdir()
    for kind in KINDS:
        settings = {"encoder": str(encoder), **SETTINGS, "epochs": 1, "kind": kind}
        if kind != "treepiece":
            del settings["tokenizer"]
        names = [f"{part}-{kind}" for part in ("topv2-minilm", "bundled", "low-resource-source", "low-resource-target")]
        for name in names:
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(settings))
    return folder


@pytest.fixture(scope="session")
def toy_topv2(tmp_path_factory):
    return once("toy_topv2", tmp_path_factory, lambda folder: write_topv2(folder / "topv2"))


@pytest.fixture(scope="session")
def recipes(tmp_path_factory, tiny_encoder):
    return once("recipes", tmp_path_factory, lambda folder: write_recipes(folder / "recipes", tiny_encoder))


@pytest.fixture(scope="session")
def quick(tiny_bundle):
    """What takes long and is tested elsewhere: graphs are copied, and the times of parsers are made up."""

    def export(model, folder, rows):
        assert len(rows) > 0
        shutil.copytree(tiny_bundle, folder)

    run_command = command.run_command

    def run(name, *arguments, topv2):
        return made_up_latency(arguments) if name == "latency" else run_command(name, *arguments, topv2=topv2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "export", export)
        patch.setattr(command, "run_command", run)
        patch.setattr(scoring, "N_TIMED", 4)
        patch.setattr(command, "EXTENSIONS", {name: EXTENSIONS[name] for name in ("label-logits", "whole-units")})
        patch.setattr(command, "MERGES", (0,))
        patch.setattr(learning_rates, "FACTORS", (3.0,))
        patch.setattr(timing, "CALM", 0)
        yield


def made_up_latency(arguments):
    assert [text.partition("=")[0] for text in arguments if "=" in text] == list(KINDS)
    times = {"median": 1.0, "p95": 2.0, "mean": 1.5}
    systems = {"treepiece": "greedy", "ar": "greedy", "nar": "parallel"}
    ratios = dict.fromkeys(("full_over_encoder_int8_greedy", "full_over_encoder_int8_greedy_mean"), 1.25)
    table = [
        {"model": kind, "engine": engine, "system": system, "full": times, "decoding": times}
        for kind, system in systems.items()
        for engine in ("float", "int8")
    ]
    return {"mode": "bundles", "rows": 500, "threads": 2, "table": table, "ratios": ratios}


@pytest.fixture(scope="session")
def reproduce(toy_topv2, recipes, quick):
    """Run the command in a work folder, with its page beside it."""

    def run(work, *arguments, data=toy_topv2):
        places = ["--topv2", data, "--work", work, "--docs", work / "docs", "--recipes", recipes]
        places += ["--results", work / "results.json"]
        return main(["reproduce", *map(str, places), *ASKED, *map(str, arguments)])

    return run


@pytest.fixture(scope="session")
def done(reproduce, tmp_path_factory):
    """A work folder in which everything has been done; tests must not change it."""

    def make(folder):
        assert reproduce(folder / "work") == 0
        return folder / "work"

    made = once("done", tmp_path_factory, make)
    return shutil.copytree(made, tmp_path_factory.mktemp("done") / "work")


@pytest.fixture
def results():
    """Return a function that reads the result of a part."""

    def read(work, name):
        return json.loads((work / "parts" / f"{name}.json").read_text())["result"]

    return read
