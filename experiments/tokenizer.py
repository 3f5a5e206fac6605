"""Times the tree tokenizer against SentencePiece, and shows how its time grows with the corpus.

    python -m experiments tokenizer [--json] [--plot FILE | --no-growth]

SentencePiece sees the same skeletons with each label and bracket written as one character. Times of both are medians of
a few repetitions, taken in turns, so that a busy moment of the machine does not fall on one side only. For the growth
of time each size is trained on twice and the shorter time counts; --no-growth leaves that out.
"""

from __future__ import annotations

import ast
import io
import json
import math
import os
import platform
import random
import resource
import statistics
import sysconfig
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import sentencepiece

from experiments.plotting import draw_growth
from experiments.topv2 import add_topv2, skeletons_of_split
from treepiece import Node, TreePieceTokenizer
from treepiece.cli.console import ProgressBars
from treepiece.progress import Progress
from treepiece.trees.node import Kind, TreeBuilder

Result = TypeVar("Result")

VOCABULARY = 762  # of the paper: 162 labels and 600 merges
REPEATS = {"train": 3, "encode": 25, "grow": 2}
SIZES = (12_500, 25_000, 50_000, 100_000, 200_000, 400_000)  # nodes of the corpora for the growth of time
PLOT = Path(__file__).parents[1] / "docs" / "figures" / "tokenizer-time.png"


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_topv2(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plot", type=Path, default=PLOT, help="where to write the plot (PNG)")
    parser.add_argument("--no-growth", action="store_true", help="only compare with SentencePiece")


def run(args: Namespace) -> None:
    """Measure, and print a table or JSON."""
    skeletons = skeletons_of_split(args.topv2, "train")
    with ProgressBars() as bars:
        figures = compare(skeletons, bars) | ({} if args.no_growth else grow(skeletons, args.plot, bars))
    if args.json:
        print(json.dumps(figures))
    else:
        print(f"TOPv2 train, {len(skeletons):,} skeletons; {platform.machine()}, {os.cpu_count()} cores, ", end="")
        print(f"Python {platform.python_version()}")
        for name, value in figures.items():
            print(f"  {name:28} {value:,.3f}" if isinstance(value, float) else f"  {name:28} {value}")


def compare(skeletons: Sequence[Node], progress: Progress) -> dict[str, float]:
    """Return times and memory of both, training and encoding, and ours over SentencePiece's."""
    lines = write_as_characters(skeletons)
    # Before anything else is timed, so that neither finds memory that an earlier run has left free.
    memory = {
        "train_peak_mb": peak_memory(lambda: TreePieceTokenizer.train(skeletons)),
        "sentencepiece_train_peak_mb": peak_memory(lambda: train_sentencepiece(lines)),
    }
    times: dict[str, list[float]] = {}

    def timed(name: str, job: Callable[[], Result]) -> Result:
        progress.update(name, len(times.get(name, ())), REPEATS[name.removeprefix("sentencepiece_")])
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


def grow(skeletons: Sequence[Node], plot: Path, progress: Progress) -> dict[str, Any]:
    """Return the exponent of training time over corpus size for syntax trees, and draw it for both corpora."""
    python = [*standard_library_trees()]
    shuffled = random.Random(0).sample(skeletons, len(skeletons))  # TOPv2 comes sorted by domain
    corpora = {"TOPv2 train": shuffled, "Python's standard library": python}
    curves = {name: time_by_size(trees, progress) for name, trees in corpora.items()}
    sizes, seconds, nodes_per_unit = np.array(curves["Python's standard library"]).T
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    draw_growth(curves, plot)
    return {
        "linear_exponent": float(exponent),
        "python_nodes": int(sizes[-1]),
        "python_train_seconds": float(seconds[-1]),
        "python_nodes_per_unit": float(nodes_per_unit[-1]),
    }


def time_by_size(trees: Sequence[Node], progress: Progress) -> list[tuple[int, float, float]]:
    """Return nodes, seconds of training and nodes a unit for the first trees up to each size."""
    points = []
    sizes = np.cumsum([tree.n_nodes for tree in trees])
    for wanted in SIZES:
        end = int(np.searchsorted(sizes, wanted)) + 1
        if end > len(trees):
            break
        part = trees[:end]
        progress.update("training on a growing corpus", int(sizes[end - 1]), SIZES[-1])
        seconds = math.inf
        for _ in range(REPEATS["grow"]):
            start = time.perf_counter()
            tokenizer = TreePieceTokenizer.train(part)
            seconds = min(seconds, time.perf_counter() - start)
        n_units = sum(map(len, tokenizer.encode_batch(part)))
        points.append((int(sizes[end - 1]), seconds, float(sizes[end - 1] / n_units)))
    return points


def standard_library_trees(seed: int = 0) -> Iterator[Node]:
    """Yield the syntax tree of each module of the standard library, in an order that depends on the seed alone."""
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in root.rglob("*.py") if not {"site-packages", "test", "tests"} & set(path.parts))
    random.Random(seed).shuffle(files)
    for path in files:
        try:
            yield syntax_tree(ast.parse(path.read_bytes()))
        except (SyntaxError, ValueError):
            continue  # a few modules hold broken code on purpose


def syntax_tree(root: ast.AST) -> Node:
    """Return a syntax tree with the types of its nodes as labels."""
    builder = TreeBuilder()
    stack: list[ast.AST | None] = [root]
    while stack:
        node = stack.pop()
        if node is None:
            builder.close()
            continue
        builder.open(type(node).__name__)
        stack.append(None)
        stack.extend(reversed(list(ast.iter_child_nodes(node))))
    assert builder.root is not None
    return builder.root
