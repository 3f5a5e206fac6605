"""Latency of trained bundles that answer freely: what `latency.py --bundles` measures.

With --json it prints one object. A key is there in every run, but for those with a question mark:

    mode            "bundles"
    version         1; a larger one where a key has another meaning than it has here
    rows            how many utterances
    rounds          how often each was parsed; `torch_rounds` in eager PyTorch
    batch, threads  1 and 2
    cpu, cores      what the processor calls itself, and how many cores there are
    versions        by name: python, treepiece, onnxruntime, numpy, tokenizers, torch, transformers
    bundles         by kind (treepiece, ar, nar): `manifest`, the SHA-256 of its manifest.json, which tells it from all
                    others; `precisions`; `weights`, whether it has those for PyTorch
    decodings       by kind, by name, those that were timed: `parse` and `ranks`, as in DECODINGS of bundles.py
    table           a list with an object for each system:
        model       treepiece, ar or nar
        engine      float, int8 or torch
        system      encoder, or the name of a decoding
        full        milliseconds from text to frame (encoder: to states): `median`, `p95` and `mean` over rows
        decoding?   the same of the difference to the encoder, row by row; the encoder has none
        passes?     decoder passes: `median`, `p95` and `mean` over rows; a pass looks at the utterance, with all of a
                    beam at once. Neither the encoder nor torch has any
        runs?       where `passes` is: by graph, how often it ran for a text, on average, when the texts first came
    ratios          by name, a number; NAME is a decoding of TreePiece, the baselines have their first, ENGINE as above;
                    those of means have `_mean` after the name. What was not given or has no such engine is left out:
        full_over_encoder_ENGINE_NAME              full parse of TreePiece / its encoder
        ar_over_treepiece_decoding_ENGINE_NAME
        treepiece_over_nar_decoding_ENGINE_NAME
        ar_over_treepiece_full_ENGINE_NAME
        float_over_int8_full_MODEL_NAME            of each model, NAME is one of its own decodings
        torch_over_ort_full_MODEL_NAME             eager PyTorch / float on ONNX Runtime
    running?        with --model, by name: start, memory, parses a second
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from bundles import DECODINGS, load_parsers, runtime_runs, torch_runs
from report import NAMES, Bar
from timing import (
    ENCODER,
    THREADS,
    TORCH,
    Costs,
    Found,
    Milliseconds,
    Run,
    Setting,
    System,
    all_costs,
    parser_ratios,
    table,
    time_systems,
)

from treepiece.bundle import MANIFEST, WEIGHTS, Bundle
from treepiece.definition import ModelKind
from treepiece.runtime.graphs import Precision, precisions_in

ENGINES = (*Precision, TORCH)


@dataclass(frozen=True)
class Measured:
    """The times of all systems, and what was counted of those that run on graphs."""

    found: dict[Setting, dict[str, Milliseconds]] = field(default_factory=dict)
    counts: dict[System, dict[str, object]] = field(default_factory=dict)

    def add(self, times: Mapping[System, Milliseconds]) -> None:
        """Add the times of systems."""
        for (setting, name), values in times.items():
            self.found.setdefault(setting, {})[name] = values

    def decodings(self, kind: ModelKind) -> dict[str, dict[str, object]]:
        """Return the ways to decode that were timed."""
        timed = {name for (what, _), name in self.counts if what == kind}
        return {name: asdict(decoding) for name, decoding in DECODINGS[kind].items() if name in timed}


def measure(bundles: Mapping[ModelKind, Bundle], texts: Sequence[str], rounds: int, rounds_torch: int) -> Measured:
    """Return the times of every bundle on every engine that it is for; the systems of one engine take turns."""
    measured = Measured()
    for precision in Precision:
        runs: dict[System, Run] = {}
        for kind, bundle in bundles.items():
            if precision in precisions_in(bundle):
                parsers = load_parsers(kind, bundle, precision)
                for name, parser in parsers.items():
                    measured.counts[(kind, precision), name] = parser.count(texts)
                runs |= _of((kind, precision), runtime_runs(parsers, texts))
        measured.add(time_systems(runs, len(texts), rounds))
    runs = {}
    for kind, bundle in bundles.items():
        runs |= _of((kind, TORCH), torch_runs(kind, bundle, texts))
    measured.add(time_systems(runs, len(texts), rounds_torch))
    return measured


def _of(setting: Setting, runs: Mapping[str, Run]) -> dict[System, Run]:
    return {(setting, name): run for name, run in runs.items()}


def ratios(found: Found) -> dict[str, float]:
    """Return the ratios by name: of medians, and with `_mean` of means."""
    result: dict[str, float] = {}
    for suffix, costs in all_costs(found).items():
        for engine in ENGINES:
            ar, nar = (_first(found, kind, engine) for kind in (ModelKind.AR, ModelKind.NAR))
            for treepiece in _systems(found, (ModelKind.TREEPIECE, engine)):
                values = parser_ratios(costs, treepiece, ar, nar)
                result |= {f"{name}_{engine}_{treepiece[1]}{suffix}": value for name, value in values.items()}
        for kind in ModelKind:
            for _, name in _systems(found, (kind, Precision.FLOAT)):
                values = _engine_ratios(costs, kind, name)
                result |= {f"{ratio}_{kind}_{name}{suffix}": value for ratio, value in values.items()}
    return result


def _engine_ratios(costs: Costs, kind: ModelKind, name: str) -> dict[str, float]:
    """Return by name how one system compares on other engines with itself on ONNX Runtime in float."""
    exact, small, torch = (((kind, engine), name) for engine in ENGINES)
    result = {}
    if small in _systems(costs.found, small[0]):
        result["float_over_int8_full"] = costs.full(exact) / costs.full(small)
    if torch in _systems(costs.found, torch[0]):
        result["torch_over_ort_full"] = costs.full(torch) / costs.full(exact)
    return result


def _systems(found: Found, setting: Setting) -> list[System]:
    """Return the parsers of a setting, all but the encoder; none if it was not timed."""
    return [(setting, name) for name in found.get(setting, {}) if name != ENCODER]


def _first(found: Found, kind: ModelKind, engine: str) -> System | None:
    return next(iter(_systems(found, (kind, engine))), None)


def to_json(measured: Measured, bundles: Mapping[ModelKind, Bundle]) -> dict[str, object]:
    """Return what was measured, as the top of this file says."""
    rows = table(measured.found, "model")
    for row, system in zip(rows, _all_systems(measured.found), strict=True):
        row |= measured.counts.get(system, {})
    return {
        "batch": 1,
        "threads": THREADS,
        "bundles": {kind: describe(bundle) for kind, bundle in bundles.items()},
        "decodings": {kind: measured.decodings(kind) for kind in bundles},
        "table": rows,
        "ratios": ratios(measured.found),
    }


def _all_systems(found: Found) -> list[System]:
    return [(setting, name) for setting, systems in found.items() for name in systems]


def describe(bundle: Bundle) -> dict[str, object]:
    """Return which bundle it is and what it has."""
    digest = hashlib.sha256((bundle.folder / MANIFEST).read_bytes()).hexdigest()
    return {"manifest": digest, "precisions": precisions_in(bundle), "weights": WEIGHTS in bundle.files}


def panels(found: Found) -> dict[str, Sequence[Bar]]:
    """Return what is drawn, by title: an engine each."""
    return {
        engine: [
            Bar(_label(kind, name), kind, found[setting][ENCODER], found[setting][name])
            for kind in NAMES
            for setting, name in _systems(found, (kind, engine))
        ]
        for engine in ENGINES
        if any(setting[1] == engine for setting in found)
    }


def _label(kind: ModelKind, name: str) -> str:
    return NAMES[kind] if len(DECODINGS[kind]) == 1 else textwrap.fill(f"{NAMES[kind]} {name.replace('_', ' ')}", 9)
