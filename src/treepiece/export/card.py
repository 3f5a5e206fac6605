"""The model card of a bundle: what it is, how good it is, what it may be used for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treepiece.definition import Definition
from treepiece.export.checking import Parity, Quality
from treepiece.runtime.graphs import Precision

_NAMES = {"treepiece": "TreePiece", "ar": "autoregressive", "nar": "non-autoregressive"}


def write_card(
    definition: Definition,
    facts: Mapping[str, Any],
    parities: Mapping[Precision, Parity],
    qualities: Mapping[Precision, Quality],
    data: str,
    licence: str,
) -> str:
    """Return the card as Markdown."""
    intents = sum(label.startswith("IN:") for label in definition.labels)
    slots = len(definition.labels) - intents
    recipe = facts.get("recipe", {})
    lines = [
        f"# A {_NAMES[definition.kind]} semantic parser",
        "",
        "Turns an utterance into a tree of intents and slots. Made by treepiece; load it with `Parser.load(FOLDER)` or",
        "`treepiece parse --model FOLDER`.",
        "",
        f"- Labels: {intents} intents, {slots} slots.",
        f"- Encoder: {recipe.get('encoder', 'unknown')}. Training rows: {facts.get('rows', 'unknown')}, "
        f"epochs: {recipe.get('epochs', 'unknown')}, seed: {recipe.get('seed', 'unknown')}.",
        f"- Data and licence: {licence or 'not stated'}.",
        "",
        "## Graphs",
        "",
        "| precision | rows checked | same tree as PyTorch | largest difference in log-probability |",
        "|---|---:|---:|---:|",
    ]
    for precision, parity in parities.items():
        lines.append(f"| {precision} | {parity.rows:,} | {parity.agreement:.2%} | {parity.largest_difference:.1e} |")
    lines += ["", "## Scores", ""]
    if not qualities:
        lines.append("Not measured: it was exported without `--data`. Confidences are not calibrated.")
    else:
        lines += [
            f"On {data}. The temperatures of confidences were fitted on every other row; the calibration errors",
            "(expected calibration error, 15 bins) are those of the rows in between.",
            "",
            "| precision | rows | EM | EM-S | calibration error of parses, before and after | of leaves |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        for precision, quality in qualities.items():
            lines.append(
                f"| {precision} | {quality.rows:,} | {quality.em:.2%} | {quality.em_s:.2%} "
                f"| {quality.parse_error_before:.3f}, {quality.parse_error_after:.3f} "
                f"| {quality.leaf_error_before:.3f}, {quality.leaf_error_after:.3f} |"
            )
    lines += [
        "",
        "## Limits",
        "",
        "It knows the intents and slots of its training data only, and answers with one of them whatever it is asked:",
        "use `min_confidence` to have doubtful answers refused. Utterances longer than the encoder takes are refused.",
        "",
    ]
    return "\n".join(lines)
