"""How a bundle behaves as a process: start-up time, memory, parses per second.

    python -m experiments process [--model BUNDLE] [--json]

`python -m experiments latency --model BUNDLE` prints this too.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from treepiece import Parser
from treepiece.bundle import BUNDLED, find_graphs, read_bundle
from treepiece.data.toy import toy_rows
from treepiece.runtime.sessions import Precision, precisions_in

REPEATS = 7
N_TEXTS = 256
_MEMORY = """
import sys
from treepiece import Parser
parser = Parser.load(sys.argv[1], precision=sys.argv[2], threads=2)
parser("remind me to call mom tonight")
if sys.argv[3] == "batch":
    parser.batch(["remind me to call mom tonight"] * 64)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""


def cold_start(model: str) -> dict[str, float]:
    """Return the seconds from the start of a process to its answer, beside those of importing ONNX Runtime alone."""
    bare = [sys.executable, "-c", "import onnxruntime"]
    parse = [sys.executable, "-m", "treepiece", "parse", "--model", model, "remind me to call mom tonight"]
    library = "from treepiece import Parser; import sys; print(Parser.load(sys.argv[1])('remind me to call mom'))"
    commands = {"import_onnxruntime": bare, "parse_command": parse, "library": [sys.executable, "-c", library, model]}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(REPEATS):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times[name].append(time.perf_counter() - begin)
    seconds = {f"seconds_{name}": statistics.median(values) for name, values in times.items()}
    base = seconds["seconds_import_onnxruntime"]
    return {
        **seconds,
        "cold_start_over_import": seconds["seconds_parse_command"] / base,
        "library_start_over_import": seconds["seconds_library"] / base,
    }


def _precisions(model: str) -> list[Precision]:
    return precisions_in(read_bundle(find_graphs(model), check=False))


def resident_megabytes(model: str) -> dict[str, float]:
    """Return the memory of a process that has parsed one text, and a batch, in each precision of a bundle."""
    result = {}
    for precision in _precisions(model):
        for what in ("text", "batch"):
            command = [sys.executable, "-c", _MEMORY, model, precision, what]
            run = subprocess.run(command, check=True, capture_output=True, text=True)
            result[f"resident_megabytes_{precision}_{what}"] = int(run.stdout) / 1024
    return result


def throughput(model: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the parses per second in batches of 1, 8 and 64."""
    result = {}
    for precision in _precisions(model):
        parser = Parser.load(model, precision=precision, threads=2)
        for size in (1, 8, 64):
            result[f"parses_a_second_{precision}_{size}"] = _rate(parser, texts, size)
    return result


def _rate(parser: Parser, texts: Sequence[str], size: int) -> float:
    rates = []
    for _ in range(4):
        begin = time.perf_counter()
        for start in range(0, len(texts), size):
            if size == 1:
                parser(texts[start])
            else:
                parser.batch(texts[start : start + size])
        rates.append(len(texts) / (time.perf_counter() - begin))
    return statistics.median(rates[1:])  # the first opens what is not open yet


def measure_process(model: str, texts: Sequence[str]) -> dict[str, float]:
    """Return all of it by name."""
    return {**cold_start(model), **resident_megabytes(model), **throughput(model, texts)}


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--model", default=BUNDLED, help="a bundle; by default the one that comes with treepiece")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Namespace) -> None:
    """Measure, which is best done where nothing but the runtime is installed."""
    result = measure_process(args.model, [utterance for _, utterance, _ in toy_rows(N_TEXTS)])
    if args.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:40}{value:10.3f}")
