"""The section on how long trained parsers take that write what they will."""

from __future__ import annotations

from collections.abc import Mapping

from reproduction.report.markdown import not_run, section, table
from reproduction.report.results import KINDS, SECOND_LOOKS, Results
from reproduction.store import Json

GREEDY = {"treepiece": "greedy", "ar": "greedy", "nar": "parallel"}
"""What the benchmark calls the search of the paper, by the kind of the parser."""
_TITLE = "Latency"
_ENCODER = "encoder"
_ENGINES = {"int8": "ONNX Runtime, int8", "float": "ONNX Runtime, float", "torch": "PyTorch, float"}
_TEXT = """\
One utterance at a time with {threads} threads, {rows} utterances of the eval split, the trained parsers of Table 1,
free to write what they will (`python -m reproduction --only latency`). "Encoder" is text to encoder states, a full
parse is text to frame, decoding is the difference, row by row. Milliseconds are medians over rows, in brackets the
95th percentile, and then means. Passes are runs of a decoder that look at the utterance, with all of a beam at once."""
_RATIOS_TEXT = """\
Ratios of medians, and in brackets of means: most trees are one unit and need no second look, and the others weigh on
the mean. The goals are those that we set ourselves for random weights that are made to write gold trees."""
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


def mean_time(results: Results, kind: str, engine: str, what: str, system: str | None = None) -> float | None:
    """Return the mean milliseconds that the latency benchmark has of a parser; by default, of greedy search."""
    latency = results.get("latency")
    rows: list[Json] = latency["script"]["table"] if latency else []
    wanted = kind, engine, system or GREEDY[kind]
    found = [
        row[what]["mean"] for row in rows if (row["model"], row["engine"], row["system"]) == wanted and what in row
    ]
    return float(found[0]) if found else None


def latency(results: Results) -> str:
    """Return the section."""
    found = results.get("latency")
    if found is None:
        return section(_TITLE, not_run("latency"))
    script = found["script"]
    text = _TEXT.format(threads=script["threads"], rows=script["rows"])
    return section(_TITLE, text, _times(script["table"]), _RATIOS_TEXT, _ratios(script["ratios"]))


def _times(measured: list[Json]) -> str:
    rows = []
    for engine, name in _ENGINES.items():
        for row in measured:
            is_wanted = row["system"] != _ENCODER or row["model"] == "treepiece"  # the others have the same encoder
            if row["engine"] == engine and is_wanted:
                passes = f"{row['passes']['mean']:.2f}" if "passes" in row else ""
                rows.append([name, _system(row), passes, *_columns(row.get("decoding")), *_columns(row["full"])])
    head = ["engine", "parser", "passes", "decoding, ms", "mean", "full parse, ms", "mean"]
    return table(head, rows)


def _system(row: Json) -> str:
    """Return what a row is of: a parser is greedy where nothing else is said."""
    if row["system"] == _ENCODER:
        return "encoder only"
    name = KINDS[row["model"]]
    if row["system"] == GREEDY[row["model"]]:
        return name
    how = "second looks" if row["system"] in SECOND_LOOKS else row["system"].replace("_", " ")
    return f"{name}, {how}"


def _columns(times: Mapping[str, float] | None) -> tuple[str, str]:
    return (f"{times['median']:.2f} ({times['p95']:.2f})", f"{times['mean']:.2f}") if times else ("", "")


def _ratios(found: Mapping[str, float]) -> str:
    looks = next((name for name in SECOND_LOOKS if f"full_over_encoder_int8_{name}" in found), None)
    columns = {"int8": "int8_greedy", "float": "float_greedy", "PyTorch": "torch_greedy"}
    if looks:
        columns["int8, second looks"] = f"int8_{looks}"
    rows = [
        [text, goal, *(_ratio(found, f"{name}_{suffix}") for suffix in columns.values())]
        for name, (text, goal) in _RATIOS.items()
    ]
    head = ["ratio", "goal", *columns]
    several = [
        [text, goal, *(_ratio(found, f"{name}_{kind}_{GREEDY[kind]}") for kind in KINDS)]
        for name, (text, goal) in _ENGINE_RATIOS.items()
    ]
    return "\n\n".join([table(head, rows), table(["ratio", "goal", *KINDS.values()], several)])


def _ratio(found: Mapping[str, float], name: str) -> str:
    return f"{found[name]:.2f} ({found[f'{name}_mean']:.2f})" if name in found else ""
