"""Table 1 of the paper beside ours, and what differs."""

from __future__ import annotations

from pathlib import PurePath

from reproduction.report.latency import mean_time
from reproduction.report.markdown import NOT_RUN, listed, not_run, number, percent, section, spread, table
from reproduction.report.paper import BATCH, EPOCHS, SEEDS, TABLE_1
from reproduction.report.results import KINDS, SECOND_LOOKS, Results, mixed_with

_ENGINES = {"int8": "int8 on ONNX Runtime", "torch": "PyTorch"}
_DIFFERENCES = f"""\
The paper trains the RoBERTa-base encoder (12 layers, width 768) in batches of {BATCH} for up to {EPOCHS} epochs
with early stopping, chooses on the validation split, and reports the mean of {SEEDS} seeds on the test split; it
does not say which processor its milliseconds are of, or what ran the models. Here:

- Encoder: {{encoder}}.
- Budget: {{budget}}.
- Rows: the best epoch is chosen on rows held out from the train split, and the scores are those of the whole eval
  split, not of the test split.
- Times: means over {{rows}} utterances of the eval split, one at a time, of graphs in 8 bits unless it says
  PyTorch. Another processor and another encoder: compare ratios, not milliseconds."""


def headline(results: Results) -> str:
    """Return the section on Table 1."""
    if not any(results.seeds(kind) for kind in KINDS):
        return section("Table 1: quality and latency", _table(results), not_run("train", "scores", "latency"))
    texts = _table(results), _second_look(results), _ratios(results), _differences(results)
    return section("Table 1: quality and latency", *texts)


def _table(results: Results) -> str:
    head = [""] + [f"{name}, {whose}" for name in KINDS.values() for whose in ("paper", "here")]
    rows = [
        _row(
            "EM, %",
            {k: f"{c.em:.2f}" for k, c in TABLE_1.items()},
            {k: percent(results.numbers(k, "em")) for k in KINDS},
        ),
        _row(
            "EM-S, %",
            {k: f"{c.em_s:.2f}" for k, c in TABLE_1.items()},
            {k: percent(results.numbers(k, "em_s")) for k in KINDS},
        ),
        _row(
            "decoding, ms",
            {k: f"{c.decoding:.0f}" for k, c in TABLE_1.items()},
            {k: number(mean_time(results, k, "int8", "decoding")) for k in KINDS},
        ),
        _row(
            "inference, ms",
            {k: f"{c.inference:.0f}" for k, c in TABLE_1.items()},
            {k: number(mean_time(results, k, "int8", "full")) for k in KINDS},
        ),
        _row("decoding in PyTorch, ms", {}, {k: number(mean_time(results, k, "torch", "decoding")) for k in KINDS}),
        _row("inference in PyTorch, ms", {}, {k: number(mean_time(results, k, "torch", "full")) for k in KINDS}),
        _row("decoder passes a tree", {}, {k: spread(results.numbers(k, "passes")) for k in KINDS}),
        _row("outputs that are no tree", {}, {k: spread(results.numbers(k, "invalid"), 0) for k in KINDS}),
        _row("epochs", dict.fromkeys(KINDS, f"up to {EPOCHS}"), {k: spread(results.epochs(k), 0) for k in KINDS}),
        _row("models (seeds)", dict.fromkeys(KINDS, str(SEEDS)), {k: str(len(results.seeds(k))) for k in KINDS}),
    ]
    return table(head, rows)


def _row(name: str, paper: dict[str, str], here: dict[str, str]) -> list[str]:
    return [name] + [cell for kind in KINDS for cell in (paper.get(kind, ""), here[kind])]


def _second_look(results: Results) -> str:
    """Return what TreePiece reaches when it looks again where it doubts, which the paper does not, if it can."""
    for name, setting in SECOND_LOOKS.items():
        em, em_s = (percent(results.numbers("treepiece", score, setting)) for score in ("em", "em_s"))
        if em != NOT_RUN:
            decoding, full = (mean_time(results, "treepiece", "int8", what, name) for what in ("decoding", "full"))
            times = f" (decoding {number(decoding)} ms, inference {number(full)} ms)" if full else ""
            return (
                "All three search greedily here, as in the paper. TreePiece as it parses by default, with a second "
                "look where it is in doubt, which the paper does not have, reaches "
                f"EM {em} and EM-S {em_s}{times}: [ways to search](#ways-to-search)."
            )
    return ""


def _ratios(results: Results) -> str:
    """Return how much faster TreePiece is than the others, which does not depend on the processor as much."""
    lines = []
    for engine, name in _ENGINES.items():
        pairs = [
            ("autoregressive / TreePiece, decoding", "ar", "treepiece", "decoding"),
            ("autoregressive / TreePiece, inference", "ar", "treepiece", "full"),
            ("TreePiece / non-autoregressive, inference", "treepiece", "nar", "full"),
        ]
        cells = [
            f"{text} {above / below:.2f}"
            for text, one, other, what in pairs
            if (above := mean_time(results, one, engine, what))
            and (below := mean_time(results, other, engine, what) or 0) > 0
        ]
        if cells:
            lines.append(f"- {name}: {'; '.join(cells)}.")
    if not lines:
        return f"Latency: {NOT_RUN} (`python -m reproduction --only latency report`)."
    paper = TABLE_1["ar"], TABLE_1["treepiece"], TABLE_1["nar"]
    ratios = (
        f"{paper[0].decoding / paper[1].decoding:.2f}, {paper[0].inference / paper[1].inference:.2f} and "
        f"{paper[1].inference / paper[2].inference:.2f}"
    )
    return "\n".join(["Ratios of the means:", "", *lines, f"- The paper: {ratios}."])


def _differences(results: Results) -> str:
    latency = results.get("latency")
    return _DIFFERENCES.format(
        encoder=_encoder(results),
        budget=_budget(results),
        rows=f"{latency['script']['rows']:,}" if latency else "some",
    )


def _encoder(results: Results) -> str:
    """Return the encoders by name; of one that is a folder, the name of the folder and not where it is."""
    found = {str(model["recipe"].get("encoder")) for kind in KINDS for model in results.models(kind)}
    names = sorted(PurePath(name).name if PurePath(name).is_absolute() else name for name in found)
    texts = {"minilm": "MiniLM-L6 (`minilm`: 6 layers, width 384)"}
    return listed([texts.get(name, f"`{name}`") for name in names]) if names else NOT_RUN


def _budget(results: Results) -> str:
    """Return how long models were trained: the epochs of the recipe, and the one that was kept."""
    texts = []
    for kind, name in KINDS.items():
        for seed, model, n_epochs in zip(results.seeds(kind), results.models(kind), results.epochs(kind), strict=True):
            recipe, epoch = model["recipe"], model["validation"].get("epoch", 0)
            before = f", after {n_epochs - epoch} of another run" if n_epochs > epoch else ""
            texts.append(
                f"{name}, seed {seed}: epoch {epoch} of {recipe.get('epochs')}{before}, in batches of "
                f"{recipe.get('batch')}{mixed_with(model)}"
            )
    return "; ".join(texts) or NOT_RUN
