"""The sections on the tokenizer and on decoder passes, which need no trained model."""

from __future__ import annotations

from pathlib import Path

from reproduction.report.figures import draw_passes
from reproduction.report.markdown import not_run, number, section, table
from reproduction.report.paper import UNENCODABLE, UNITS
from reproduction.report.results import Results

FIGURE = "decoder-passes.png"
_TEXT = """\
Passes for the gold trees of the eval split: TreePiece {treepiece:.2f} a tree (one a unit, and one for the spans
where there is a leaf), autoregressive {ar:.2f}, non-autoregressive {nar:.2f}; {single:.1f} % of the trees are a
single unit. The paper counts the tokens of the logical form with RoBERTa's subword tokenizer; here they are those
that the autoregressive parser writes, so that its curve is the diagonal (`python benchmarks/steps.py --help`)."""
_TIMES = """\
Training on the {trees:,} skeletons of the train split takes {train:.2f} s, and SentencePiece's unigram model takes
{sentencepiece:.2f} s for the same skeletons with one character for each label and bracket; encoding all of them
takes {encode:.3f} s and {sentencepiece_encode:.3f} s."""


def passes(results: Results, figures: Path) -> str:
    """Return the section on the paper's Figure 3, after drawing it."""
    found = results.get("figure3")
    if found is None:
        return section("Figure 3: decoder passes", not_run("figure3"))
    draw_passes(found["by_length"], figures / FIGURE)
    text = _TEXT.format(
        treepiece=found["treepiece"], ar=found["ar"], nar=found["nar"], single=100 * found["single_unit"]
    )
    return section("Figure 3: decoder passes", text, f"![Decoder passes by length]({figures.name}/{FIGURE})")


def tokenizer(results: Results) -> str:
    """Return the section on vocabularies."""
    found = results.get("tokenizer")
    if found is None:
        return section("Tokenizer", not_run("tokenizer"))
    ways = {name: way for name, way in found["vocabularies"].items() if name != "train"}
    rows = [
        [
            name,
            f"{way['units']:,}",
            number(way["units_per_tree"], 3),
            f"{100 * way['unencodable_seen_labels'] / way['trees']:.2f}",
            f"{way['train_seconds']:.2f}",
        ]
        for name, way in ways.items()
    ]
    head = ["vocabulary", "units", "units a tree", "unencodable, %", "training, s"]
    times = found["times"]
    text = _TIMES.format(
        trees=found["vocabularies"]["train"]["trees"],
        train=times["train_seconds"],
        sentencepiece=times["sentencepiece_train_seconds"],
        encode=times["encode_seconds"],
        sentencepiece_encode=times["sentencepiece_encode_seconds"],
    )
    paper = f"The paper has {UNITS:,} units, and {UNENCODABLE} of the trees of the test split cannot be encoded."
    intro = "Learned on the train split, counted on the eval split; 600 merges unless it says otherwise."
    return section("Tokenizer", intro, table(head, rows), paper, text)
