"""The section on how long trained parsers take."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.parts import Json
from experiments.plotting import KINDS
from experiments.report.markdown import section, table
from experiments.report.results import Results

GREEDY = {"treepiece": "greedy", "ar": "greedy", "nar": "parallel"}
"""What the latency experiment calls the search of the paper, by the kind of the parser."""
_ENCODER = "encoder"
_ENGINES = {"int8": "ONNX Runtime, int8", "float": "ONNX Runtime, float", "torch": "PyTorch, float"}
_TEXT = """\
One utterance at a time with {threads} threads, {rows} utterances of the eval split, the trained parsers of Table 1
(`python -m experiments reproduce --only latency`). "Encoder" is text to encoder states, a full parse is text to frame,
decoding is the difference, row by row. Milliseconds are medians over rows, the 95th percentile in brackets, and then
means. Passes are runs of a decoder that look at the utterance, with all of a beam at once."""
_RATIOS_TEXT = """\
Ratios of medians, and of means in brackets: most trees are one unit and are not reranked; the others weigh on the mean.
The goals are those that we set ourselves for random weights that are made to write gold trees."""
_RATIOS = {
    "full_over_encoder": ("full TreePiece parse / encoder", "at most 1.2"),
    "ar_over_treepiece_decoding": ("autoregressive / TreePiece, decoding", "at least 10"),
    "treepiece_over_nar_decoding": ("TreePiece / non-autoregressive, decoding", "at most 0.7"),
    "ar_over_treepiece_full": ("autoregressive / TreePiece, full", "at least 2"),
}
_ENGINE_RATIOS = {
    "float_over_int8_full": ("float / int8, full", "at least 1.3"),
    "torch_over_ort_full": ("PyTorch / ONNX Runtime in float, full", "at least 3"),
}
_COLUMNS = {
    "int8": "int8_greedy",
    "float": "float_greedy",
    "PyTorch": "torch_greedy",
    "int8, reranking": "int8_default",
}


def mean_time(results: Results, kind: str, engine: str, what: str, system: str | None = None) -> float | None:
    """Return the mean milliseconds that the latency experiment has of a parser; by default, of greedy search."""
    latency = results.get("latency")
    wanted = kind, engine, system or GREEDY[kind]
    for row in latency["script"]["table"] if latency else []:
        if (row["model"], row["engine"], row["system"]) == wanted and what in row:
            return float(row[what]["mean"])
    return None


def latency(results: Results) -> str:
    """Return the section."""
    found = results.get("latency")
    if found is None:
        return ""
    script = found["script"]
    text = _TEXT.format(threads=script["threads"], rows=script["rows"])
    return section("Latency", text, _times(script["table"]), _RATIOS_TEXT, _ratios(script["ratios"]))


def _times(measured: list[Json]) -> str:
    rows = []
    for engine, name in _ENGINES.items():
        for row in measured:
            is_wanted = row["system"] != _ENCODER or row["model"] == "treepiece"  # the others have the same encoder
            if row["engine"] == engine and is_wanted:
                passes = f"{row['passes']['mean']:.2f}" if "passes" in row else ""
                rows.append([name, _system(row), passes, *_cells(row.get("decoding")), *_cells(row["full"])])
    head = ["engine", "parser", "passes", "decoding, ms", "mean", "full parse, ms", "mean"]
    return table(head, rows)


def _system(row: Json) -> str:
    """Return what a row is of: a parser is greedy unless stated otherwise."""
    if row["system"] == _ENCODER:
        return "encoder only"
    name = KINDS[row["model"]]
    return name if row["system"] == GREEDY[row["model"]] else f"{name}, {row['system']}"


def _cells(times: Mapping[str, float] | None) -> tuple[str, str]:
    return (f"{times['median']:.2f} ({times['p95']:.2f})", f"{times['mean']:.2f}") if times else ("", "")


def _ratios(found: Mapping[str, float]) -> str:
    rows = [
        [text, goal, *(_ratio(found, f"{name}_{suffix}") for suffix in _COLUMNS.values())]
        for name, (text, goal) in _RATIOS.items()
    ]
    engine_rows = [
        [text, goal, *(_ratio(found, f"{name}_{kind}_{GREEDY[kind]}") for kind in KINDS)]
        for name, (text, goal) in _ENGINE_RATIOS.items()
    ]
    tables = table(["ratio", "goal", *_COLUMNS], rows), table(["ratio", "goal", *KINDS.values()], engine_rows)
    return "\n\n".join(tables)


def _ratio(found: Mapping[str, float], name: str) -> str:
    return f"{found[name]:.2f} ({found[f'{name}_mean']:.2f})" if name in found else ""
