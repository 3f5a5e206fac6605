"""Measures how long a parse takes: TreePiece against both baselines, ONNX Runtime against PyTorch, int8 against float.

    python benchmarks/latency.py [--rows N] [--rounds N] [--model BUNDLE] [--plot FILE.png] [--json]

Batch 1, two threads, utterances and gold trees of TOPv2 eval. Every parser is made to write the gold tree, so random
weights will do (see systems.py). "Encoder" is text to encoder states; a full parse is text to frame; decoding is the
difference, row by row. Systems take turns in blocks, so that a busy machine slows all of them alike, and a row counts
with the median of its rounds. The table has medians and 95th percentiles over rows. The ratios are of medians; those
whose names end in `_mean` are of means.

With --model, a bundle with a trained model, also: start of the process to the answer of `treepiece parse`, memory, and
parses a second in batches.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from bart import bart_run
from running import cold_start, resident_megabytes, throughput
from systems import ARCHITECTURES, ENCODER, THREADS, Corpus, Run, build, runtime_runs, torch_runs, write_bundles

from treepiece.definition import ModelKind
from treepiece.runtime.graphs import Precision

TREEPIECE, AR, NAR = ModelKind.TREEPIECE, ModelKind.AR, ModelKind.NAR
TORCH = "torch"
WARM_UP = 3
BLOCK = 20  # rows that a system parses before it is the next one's turn
CALM = 0.1  # seconds in which the threads of the system before stop looking for work
BART = "BART-base"

Seconds = npt.NDArray[np.float64]
Setting = tuple[str, str]
"""An architecture, and what runs it: torch, float or int8."""


def time_systems(runs: Mapping[str, Run], n_rows: int, rounds: int) -> dict[str, Seconds]:
    """Return the milliseconds of each row for each system. Shape: (rows,)."""
    times = {name: np.zeros((rounds, n_rows)) for name in runs}
    for turn in range(rounds):
        for first in range(0, n_rows, BLOCK):
            for name, run in runs.items():
                time.sleep(CALM)
                for _ in range(WARM_UP):
                    run(first)
                for item in range(first, min(first + BLOCK, n_rows)):
                    begin = time.perf_counter()
                    run(item)
                    times[name][turn, item] = (time.perf_counter() - begin) * 1e3
    return {name: np.median(rows, axis=0) for name, rows in times.items()}


def measure(corpus: Corpus, rounds: int, rounds_torch: int) -> dict[Setting, dict[str, Seconds]]:
    """Return the milliseconds of every system in every setting."""
    found: dict[Setting, dict[str, Seconds]] = {}
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


def summarise(values: Seconds) -> dict[str, float]:
    """Return what the table shows."""
    return {
        "median": float(np.median(values)),
        "p95": float(np.quantile(values, 0.95)),
        "mean": float(np.mean(values)),
    }


def table(found: Mapping[Setting, Mapping[str, Seconds]]) -> list[dict[str, object]]:
    """Return a row for each system in each setting: decoding and full parse."""
    rows: list[dict[str, object]] = []
    for (architecture, engine), systems in found.items():
        for name, values in systems.items():
            row: dict[str, object] = {"architecture": architecture, "engine": engine, "system": str(name)}
            if name in tuple(ModelKind):
                row["decoding"] = summarise(values - systems[ENCODER])
            rows.append({**row, "full": summarise(values)})
    return rows


def ratios(found: Mapping[Setting, Mapping[str, Seconds]]) -> dict[str, float]:
    """Return the ratios by name: of medians, and with `_mean` of means."""
    result: dict[str, float] = {}
    for suffix, statistic in (("", np.median), ("_mean", np.mean)):

        def full(setting: Setting, name: str, statistic: object = statistic) -> float:
            return float(statistic(found[setting][name]))  # type: ignore[operator]

        def decoding(setting: Setting, name: str, statistic: object = statistic) -> float:
            return float(statistic(found[setting][name] - found[setting][ENCODER]))  # type: ignore[operator]

        for setting in [("MiniLM", "int8"), ("MiniLM", "float"), ("RoBERTa-base", "int8"), ("RoBERTa-base", "float")]:
            # What is shipped, MiniLM in int8, has the plain names.
            where = "" if setting == ("MiniLM", "int8") else f"_{setting[0].lower().replace('-', '_')}_{setting[1]}"
            result |= {
                f"full_over_encoder{where}{suffix}": full(setting, TREEPIECE) / full(setting, ENCODER),
                f"ar_over_treepiece_decoding{where}{suffix}": decoding(setting, AR) / decoding(setting, TREEPIECE),
                f"treepiece_over_nar_decoding{where}{suffix}": decoding(setting, TREEPIECE) / decoding(setting, NAR),
                f"ar_over_treepiece_full{where}{suffix}": full(setting, AR) / full(setting, TREEPIECE),
            }
        minilm, paper = ("MiniLM", "float"), ("RoBERTa-base", TORCH)
        result |= {
            f"paper_setting_ar_over_treepiece_decoding{suffix}": decoding(paper, AR) / decoding(paper, TREEPIECE),
            f"float_over_int8_full{suffix}": full(minilm, TREEPIECE) / full(("MiniLM", "int8"), TREEPIECE),
            f"torch_over_ort_full{suffix}": full(("MiniLM", TORCH), TREEPIECE) / full(minilm, TREEPIECE),
            f"bart_over_treepiece_full{suffix}": full((BART, TORCH), BART) / full(("MiniLM", "int8"), TREEPIECE),
        }
    return result


def draw(found: Mapping[Setting, Mapping[str, Seconds]], file: str) -> None:
    """Save a plot: the time of a parse, encoder and decoding, for each system in each setting."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    settings = [setting for setting in found if setting[0] != BART]
    figure, axes = plt.subplots(2, 3, figsize=(10, 5), layout="constrained", sharey="row")
    colours = {TREEPIECE: "#0072B2", AR: "#D55E00", NAR: "#555555"}
    for axis, setting in zip(axes.flat, settings, strict=True):
        systems = found[setting]
        encoder = float(np.median(systems[ENCODER]))
        for place, (name, colour) in enumerate(colours.items()):
            axis.bar(place, encoder, color="#cccccc")
            axis.bar(place, float(np.median(systems[name])) - encoder, bottom=encoder, color=colour)
        axis.set_xticks(range(3), ["TreePiece", "AR", "NAR"])
        axis.set_title(f"{setting[0]}, {setting[1]}", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    for row in axes:
        row[0].set_ylabel("milliseconds (median)")
    figure.suptitle("One parse: encoder (grey) and decoding (colour); TOPv2 eval, batch 1, two threads")
    figure.savefig(file, dpi=150)


def show(result: Mapping[str, object]) -> None:
    """Print tables."""
    print(f"{'':14}{'':8}{'':12}{'decoding, ms':>24}{'full, ms':>24}")
    print(f"{'architecture':14}{'engine':8}{'system':12}{'median':>12}{'p95':>12}{'median':>12}{'p95':>12}")
    for row in result["table"]:  # type: ignore[attr-defined]
        cells = [
            f"{row[part][key]:12.2f}" if part in row else f"{'-':>12}"
            for part in ("decoding", "full")
            for key in ("median", "p95")
        ]
        print(f"{row['architecture']:14}{row['engine']:8}{row['system']:12}{''.join(cells)}")
    print()
    for name, value in result.items():
        if isinstance(value, float):
            print(f"{name:66}{value:10.3f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100, help="utterances, evenly spread over eval")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is parsed")
    parser.add_argument("--torch-rounds", type=int, default=2, help="how often each is parsed in eager PyTorch")
    parser.add_argument("--model", help="a bundle with a trained model, for start, memory and throughput")
    parser.add_argument("--plot", metavar="FILE.png", help="save a plot")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    corpus = Corpus(args.rows)
    result: dict[str, object] = {}
    if args.model:
        texts = [row.frame.utterance for row in corpus.rows if row.frame]
        result |= {**cold_start(args.model), **resident_megabytes(args.model), **throughput(args.model, texts)}
    found = measure(corpus, args.rounds, args.torch_rounds)
    result |= {**ratios(found), "rows": len(corpus.rows), "table": table(found)}
    if args.plot:
        draw(found, args.plot)
    if args.json:
        print(json.dumps(result))
    else:
        show(result)


if __name__ == "__main__":
    main()
