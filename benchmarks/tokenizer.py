"""Times the tree tokenizer against SentencePiece, and shows how its time grows with the corpus.

    python benchmarks/tokenizer.py [--json] [--plot FILE | --no-growth]

SentencePiece sees the same skeletons with each label and bracket written as one character. Times of both are medians of
a few repetitions, taken in turns, so that a busy moment of the machine does not fall on one side only. For the growth
of time each size is trained on twice and the shorter time counts; --no-growth leaves that out.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import platform
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import sentencepiece
from corpora import standard_library_trees, topv2_skeletons

from treepiece import Node, TreePieceTokenizer
from treepiece.trees.node import Kind

Result = TypeVar("Result")

VOCABULARY = 762  # of the paper: 162 labels and 600 merges
REPEATS = {"train": 3, "encode": 25, "grow": 2}
SIZES = (12_500, 25_000, 50_000, 100_000, 200_000, 400_000)  # nodes of the corpora for the growth of time
PLOT = Path(__file__).parents[1] / "docs" / "figures" / "tokenizer-time.png"


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", type=Path, default=PLOT, help="where to write the plot (PNG)")
    parser.add_argument("--no-growth", action="store_true", help="only compare with SentencePiece")
    options = parser.parse_args()
    skeletons = topv2_skeletons()
    figures = compare(skeletons) | ({} if options.no_growth else grow(skeletons, options.plot))
    if options.json:
        print(json.dumps(figures))
    else:
        print(f"TOPv2 train, {len(skeletons):,} skeletons; {platform.machine()}, {os.cpu_count()} cores, ", end="")
        print(f"Python {platform.python_version()}")
        for name, value in figures.items():
            print(f"  {name:28} {value:,.3f}" if isinstance(value, float) else f"  {name:28} {value}")


def compare(skeletons: Sequence[Node]) -> dict[str, float]:
    """Return times and memory of both, training and encoding, and ours over SentencePiece's."""
    lines = write_as_characters(skeletons)
    # Before anything else is timed, so that neither finds memory that an earlier run has left free.
    memory = {
        "train_peak_mb": peak_memory(lambda: TreePieceTokenizer.train(skeletons)),
        "sentencepiece_train_peak_mb": peak_memory(lambda: train_sentencepiece(lines)),
    }
    times: dict[str, list[float]] = {}

    def timed(name: str, job: Callable[[], Result]) -> Result:
        say(name)
        start = time.perf_counter()
        result = job()
        times.setdefault(name, []).append(time.perf_counter() - start)
        return result

    for _ in range(REPEATS["train"]):
        ours = timed("train", lambda: TreePieceTokenizer.train(skeletons))
        theirs = timed("sentencepiece_train", lambda: train_sentencepiece(lines))
    for _ in range(REPEATS["encode"]):
        timed("encode", lambda: ours.encode_batch(skeletons))
        timed("sentencepiece_encode", lambda: theirs.encode(lines))
    typical = {f"{name}_seconds": statistics.median(values) for name, values in times.items()}
    return {
        "train_ratio": typical["train_seconds"] / typical["sentencepiece_train_seconds"],
        "encode_ratio": typical["encode_seconds"] / typical["sentencepiece_encode_seconds"],
        **typical,
        **memory,
        "units_per_tree": np.mean([len(ids) for ids in ours.encode_batch(skeletons)]).item(),
        "sentencepiece_per_tree": np.mean([len(ids) for ids in theirs.encode(lines)]).item(),
    }


def write_as_characters(skeletons: Sequence[Node]) -> list[str]:
    """Return each skeleton with one character for each opening label and one for the closing bracket."""
    characters: dict[str, str] = {}

    def character(symbol: str) -> str:
        return characters.setdefault(symbol, chr(0x4E00 + len(characters)))

    written: dict[Node, str] = {}
    for tree in skeletons:
        if tree not in written:
            written[tree] = "".join(character("]" if k is Kind.CLOSE else label) for k, label in tree.events())
    return [written[tree] for tree in skeletons]


def train_sentencepiece(lines: Sequence[str]) -> sentencepiece.SentencePieceProcessor:
    """Return SentencePiece's unigram model of the same vocabulary size, told not to change or split the text."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="unigram",
        vocab_size=VOCABULARY,
        hard_vocab_limit=False,
        character_coverage=1.0,
        split_by_unicode_script=False,
        split_by_whitespace=False,
        add_dummy_prefix=False,
        normalization_rule_name="identity",
        num_threads=os.cpu_count(),
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def peak_memory(job: Callable[[], object]) -> float:
    """Return by how many MB a job raises the resident memory of a process at its peak."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        before = pages * resource.getpagesize() / 1e6
        job()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        os.write(writer, str(peak - before).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        value = float(answer.read())
    os.waitpid(child, 0)
    return value


def grow(skeletons: Sequence[Node], plot: Path) -> dict[str, Any]:
    """Return the exponent of training time over corpus size for syntax trees, and draw it for both corpora."""
    python = [*standard_library_trees()]
    shuffled = random.Random(0).sample(skeletons, len(skeletons))  # TOPv2 comes sorted by domain
    curves = {"TOPv2 train": time_by_size(shuffled), "Python's standard library": time_by_size(python)}
    sizes, seconds, nodes_per_unit = np.array(curves["Python's standard library"]).T
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    draw(curves, plot)
    return {
        "linear_exponent": float(exponent),
        "python_nodes": int(sizes[-1]),
        "python_train_seconds": float(seconds[-1]),
        "python_nodes_per_unit": float(nodes_per_unit[-1]),
    }


def time_by_size(trees: Sequence[Node]) -> list[tuple[int, float, float]]:
    """Return nodes, seconds of training and nodes a unit for the first trees up to each size."""
    points = []
    sizes = np.cumsum([tree.n_nodes for tree in trees])
    for wanted in SIZES:
        end = int(np.searchsorted(sizes, wanted)) + 1
        if end > len(trees):
            break
        part = trees[:end]
        say(f"training on {sizes[end - 1]:,} nodes")
        seconds = math.inf
        for _ in range(REPEATS["grow"]):
            start = time.perf_counter()
            tokenizer = TreePieceTokenizer.train(part)
            seconds = min(seconds, time.perf_counter() - start)
        n_units = sum(map(len, tokenizer.encode_batch(part)))
        points.append((int(sizes[end - 1]), seconds, float(sizes[end - 1] / n_units)))
    return points


def draw(curves: dict[str, list[tuple[int, float, float]]], path: Path) -> None:
    """Write a plot of time against corpus size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, points in curves.items():
        axes.loglog([p[0] for p in points], [p[1] for p in points], marker="o", label=name)
    axes.set(xlabel="nodes of the corpus", ylabel="seconds of training", title="Training time of the tree tokenizer")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def say(text: str) -> None:
    """Write what is being done to standard error."""
    print(
        f"\r\x1b[K{text}" if sys.stderr.isatty() else text, end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr
    )


if __name__ == "__main__":
    main()
