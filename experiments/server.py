"""Measures `treepiece serve` from a second process on the same machine, and checks every answer.

    python -m experiments server [--model BUNDLE] [--seconds 10] [--rounds 3] [--overload SECONDS] [--json]

Each connection sends one text, waits for the answer, and sends the next. The server and `Parser.batch` in this process
(batches of 64) take turns in rounds, so that a busy machine slows both alike, and the ratio is the median over rounds.
The client works on the same cores as the server. An answer is wrong if it is not, but for its milliseconds, what
`Parser` says of the text alone; a request is lost if it has no answer.

    throughput_ratio_64    answers a second at 64 connections, over parses a second of `Parser.batch`
    p99_over_median_64     of the time that an answer takes, at 64 connections
    wrong_64, lost_64      at 64 connections; `wrong` and `lost` are over all numbers of them
    cpu_ratio_64           processor time of a parse in a batch, over that of an answer, client and server together:
                           what the throughput ratio would be if nothing ever waited, whatever else the machine does

`--overload 600` then has ten minutes of good, bad and slow clients, more than the server can answer (see overload.py).
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.clients import Load, expected_of, request_bytes, run_load, serving, without_times
from experiments.overload import overload
from experiments.timing import machine
from treepiece import Parser
from treepiece.bundle import BUNDLED
from treepiece.cli.console import ProgressBars
from treepiece.data.toy import toy_rows

CONNECTIONS = (1, 8, 64, 256)
COMPARED = 64
TEXTS = 512


def make_texts(n: int = TEXTS) -> list[str]:
    """Return different utterances."""
    return list(dict.fromkeys(utterance for _, utterance, _ in toy_rows(2 * n)))[:n]


def batch_rate(parser: Parser, texts: Sequence[str], seconds: float) -> tuple[float, float]:
    """Return the parses a second of `Parser.batch`, and the processor seconds of each."""
    done = 0
    begin, used = time.perf_counter(), time.process_time()
    while (passed := time.perf_counter() - begin) < seconds or not done:
        start = done % len(texts)
        done += len(parser.batch(texts[start : start + COMPARED]))
    return done / passed, (time.process_time() - used) / done


def count_wrong(load: Load, expected: Sequence[Mapping[str, Any]]) -> int:
    """Return how many answers are not what the library says."""
    return sum(
        seen.status != 200 or without_times(json.loads(seen.body)) != expected[seen.number] for seen in load.seen
    )


def measure(model: str, *, seconds: float, rounds: int, connections: Sequence[int] = CONNECTIONS) -> dict[str, float]:
    """Return throughput, latency and faults for each number of connections."""
    texts = make_texts()
    parser = Parser.load(model)
    expected = [expected_of(parser, text) for text in texts]
    requests = [request_bytes(json.dumps({"text": text}).encode()) for text in texts]
    loads: dict[int, list[Load]] = {n: [] for n in connections}
    rates: list[tuple[float, float]] = []
    with serving(model) as server, ProgressBars() as bars:
        for n in connections:  # nobody's first requests count
            asyncio.run(run_load(server, requests, n, min(1.0, seconds)))
        for turn in range(rounds):
            bars.update("measuring", turn, rounds)
            rates.append(batch_rate(parser, texts, seconds))
            for n in connections:
                loads[n].append(asyncio.run(run_load(server, requests, n, seconds)))
    result: dict[str, float] = {"batch_rate": statistics.median(rate for rate, _ in rates)}
    for n, few in loads.items():
        milliseconds = np.array([seen.seconds for load in few for seen in load.seen]) * 1e3
        median, p95, p99 = np.percentile(milliseconds, [50, 95, 99]).tolist()
        result |= {
            f"rate_{n}": statistics.median(load.rate for load in few),
            f"throughput_ratio_{n}": statistics.median(
                load.rate / rate for load, (rate, _) in zip(few, rates, strict=True)
            ),
            f"cpu_ratio_{n}": statistics.median(
                cpu / (load.cpu_seconds / len(load.seen)) for load, (_, cpu) in zip(few, rates, strict=True)
            ),
            f"p50_{n}": median,
            f"p95_{n}": p95,
            f"p99_{n}": p99,
            f"p99_over_median_{n}": p99 / median,
            f"answers_{n}": sum(len(load.seen) for load in few),
            f"wrong_{n}": sum(count_wrong(load, expected) for load in few),
            f"lost_{n}": sum(load.lost for load in few),
        }
    totals = {name: sum(result[f"{name}_{n}"] for n in loads) for name in ("answers", "wrong", "lost")}
    return result | totals


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--model", default=BUNDLED, help="a bundle; by default the one that comes with treepiece")
    parser.add_argument("--seconds", type=float, default=10, help="for each number of connections, each round")
    parser.add_argument("--rounds", type=int, default=3, help="0: the overload alone")
    parser.add_argument("--overload", type=float, default=0, metavar="SECONDS", help="overload the server for so long")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Namespace) -> None:
    """Measure and print."""
    result = measure(args.model, seconds=args.seconds, rounds=args.rounds) if args.rounds else {}
    if args.overload:
        result |= overload(args.model, args.overload, make_texts())
    if args.json:
        print(json.dumps({"machine": machine(), **result}))
        return
    for fact, found in machine().items():
        print(f"{fact:34}{found}")
    for name, value in result.items():
        print(f"{name:34}{value:12,.3f}")
