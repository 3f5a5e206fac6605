"""Measures how a trained bundle behaves as a process: start, memory, parses a second.

    python benchmarks/running.py [--model BUNDLE] [--json]

`latency.py --model` runs this too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from treepiece import Parser
from treepiece.data.toy import toy_rows
from treepiece.runtime.graphs import precisions_in
from treepiece.runtime.models import open_bundle
from treepiece.shipped import BUNDLED

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


def resident_megabytes(model: str) -> dict[str, float]:
    """Return the memory of a process that has parsed one text, and a batch, in each precision of a bundle."""
    result = {}
    for precision in precisions_in(open_bundle(model)):
        for what in ("text", "batch"):
            command = [sys.executable, "-c", _MEMORY, model, precision, what]
            run = subprocess.run(command, check=True, capture_output=True, text=True)
            result[f"resident_megabytes_{precision}_{what}"] = int(run.stdout) / 1024
    return result


def throughput(model: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the parses a second of batches of 1, 8 and 64, free to write what they will."""
    result = {}
    for precision in precisions_in(open_bundle(model)):
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


def main() -> None:
    """Measure, which is best done where nothing but the runtime is installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=BUNDLED, help="a bundle; by default the one that comes with treepiece")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    texts = [utterance for _, utterance, _ in toy_rows(N_TEXTS)]
    result = {**cold_start(args.model), **resident_megabytes(args.model), **throughput(args.model, texts)}
    if args.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:40}{value:10.3f}")


if __name__ == "__main__":
    main()
