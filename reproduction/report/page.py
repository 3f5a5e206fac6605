"""`docs/results.md`: all sections, from the results that are there."""

from __future__ import annotations

from pathlib import Path

from reproduction.report.about import about
from reproduction.report.accuracy import compared, groups, precisions
from reproduction.report.confidence import confidence
from reproduction.report.headline import headline
from reproduction.report.inside import inside
from reproduction.report.latency import latency
from reproduction.report.markdown import wrap
from reproduction.report.results import Results
from reproduction.report.searching import searching
from reproduction.report.training import ablations, few_rows
from reproduction.report.trees import passes, tokenizer
from reproduction.store import Store
from treepiece.errors import DataError
from treepiece.files import replace_files

PAGE = "results.md"
FIGURES = "figures"
KEPT = "results"
"""The folder beside the page that has the results which it was written from."""
_TITLE = """\
# Results

The tables and figures of the paper, and more, as this repository makes them: [how](#how-this-was-made). EM is the
share of utterances whose tree is right in labels, order and words, EM-S that of right skeletons. Where there are
several models of a kind, trained with different seeds, a figure is their mean, and in brackets their range. Unless
it says otherwise, scores are those of the whole TOPv2 eval split, graphs in 8 bits, greedy search. This page is
written by a program: do not edit it."""


def write_report(store: Store, docs: Path) -> Path:
    """Write the page and its figures, and return where it is; what is missing is said to be.

    The results that it is written from are kept beside it. Where the store has no result of a part, the one that an
    earlier page was written from counts, on whatever machine it was made: a page can grow over months.
    """
    kept = Store(docs / KEPT)
    results = Results(store, kept)
    figures = docs / FIGURES
    sections = [
        wrap(_TITLE),
        _outdated(results),
        headline(results),
        inside(results),
        compared(results),
        groups(results),
        searching(results),
        latency(results),
        precisions(results),
        confidence(results, figures),
        passes(results, figures),
        tokenizer(results),
        few_rows(results, figures),
        ablations(results),
        about(results),
    ]
    text = "\n\n".join(filter(None, sections)) + "\n"
    try:
        replace_files(docs, {PAGE: text.encode()})
    except OSError as error:
        raise DataError(f"{docs / PAGE}: cannot be written: {error.strerror}") from None
    keep(results, kept)
    return docs / PAGE


def keep(results: Results, kept: Store) -> None:
    """Write down the results that a page was written from."""
    for record in results.records.values():
        kept.write(record)


def _outdated(results: Results) -> str:
    """Return a warning where results do not belong together."""
    names = results.outdated()
    if not names:
        return ""
    return f"Out of date, made from results that have been replaced since: {', '.join(names)}."
