"""Latency of random weights that are made to write the gold tree: for architectures that have not been trained."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from bart import bart_run
from report import NAMES, Bar
from systems import ARCHITECTURES, Corpus, build, runtime_runs, torch_runs, write_bundles
from timing import ENCODER, TORCH, Found, Milliseconds, Setting, all_costs, parser_ratios, time_systems

from treepiece.definition import ModelKind
from treepiece.runtime.graphs import Precision

TREEPIECE, AR, NAR = ModelKind.TREEPIECE, ModelKind.AR, ModelKind.NAR
BART = "BART-base"


def measure(corpus: Corpus, rounds: int, rounds_torch: int) -> dict[Setting, dict[str, Milliseconds]]:
    """Return the times of every system in every setting."""
    found: dict[Setting, dict[str, Milliseconds]] = {}
    for architecture in ARCHITECTURES:
        models, gold = build(corpus, architecture)
        n_rows = len(gold.examples)
        with tempfile.TemporaryDirectory() as folder:
            write_bundles(models, Path(folder))
            for precision in Precision:
                runs = runtime_runs(gold, precision, Path(folder))
                found[architecture, precision] = time_systems(runs, n_rows, rounds)
        found[architecture, TORCH] = time_systems(torch_runs(models, gold), n_rows, rounds_torch)
        if architecture == "MiniLM":
            few = min(n_rows, 30)
            bart = bart_run(gold, models[TREEPIECE].subwords)
            found[BART, TORCH] = time_systems({BART: bart}, few, 1)
    return found


def ratios(found: Found) -> dict[str, float]:
    """Return the ratios by name: of medians, and with `_mean` of means."""
    result: dict[str, float] = {}
    for suffix, costs in all_costs(found).items():
        for setting in [("MiniLM", "int8"), ("MiniLM", "float"), ("RoBERTa-base", "int8"), ("RoBERTa-base", "float")]:
            # What is shipped, MiniLM in int8, has the plain names.
            where = "" if setting == ("MiniLM", "int8") else f"_{setting[0].lower().replace('-', '_')}_{setting[1]}"
            systems = (setting, TREEPIECE), (setting, AR), (setting, NAR)
            result |= {f"{name}{where}{suffix}": value for name, value in parser_ratios(costs, *systems).items()}
        full = {setting: costs.full((setting, TREEPIECE)) for setting in found if setting[0] == "MiniLM"}
        paper, bart = ("RoBERTa-base", TORCH), costs.full(((BART, TORCH), BART))
        exact, small, torch = full["MiniLM", "float"], full["MiniLM", "int8"], full["MiniLM", TORCH]
        slow, fast = costs.decoding((paper, AR)), costs.decoding((paper, TREEPIECE))
        result |= {
            f"paper_setting_ar_over_treepiece_decoding{suffix}": slow / fast,
            f"float_over_int8_full{suffix}": exact / small,
            f"torch_over_ort_full{suffix}": torch / exact,
            f"bart_over_treepiece_full{suffix}": bart / small,
        }
    return result


def panels(found: Found) -> dict[str, Sequence[Bar]]:
    """Return what is drawn, by title."""
    return {
        f"{architecture}, {engine}": [Bar(NAMES[kind], kind, systems[ENCODER], systems[kind]) for kind in NAMES]
        for (architecture, engine), systems in found.items()
        if architecture != BART
    }
