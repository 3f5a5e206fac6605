"""The part that scores the model that comes with treepiece: the very files of the package, on the whole eval split.

The other parts train three parsers in one way, to compare them. The model inside may have been trained for longer.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from reproduction.data import file_digest, rows_of_split, split_files
from reproduction.part import Job, Part
from reproduction.store import Json
from reproduction.training import facts_of, manifest_digest
from treepiece.shipped import BUNDLED, find_graphs

INSIDE = "inside"


def inside_part(topv2: Path) -> Part:
    """Return the part."""
    model = find_graphs(BUNDLED)

    def work(job: Job) -> Json:
        return _score(job, model, topv2)

    return Part(
        INSIDE,
        "score the model that comes with treepiece on TOPv2 eval",
        {"data": file_digest(topv2, split_files("eval")), "model": manifest_digest(model)},
        work,
    )


def _score(job: Job, model: Path, topv2: Path) -> Json:
    from reproduction.answers import score_rows, time_decodings
    from reproduction.decodings import decodings_for
    from treepiece.runtime.parser import Parser

    rows = rows_of_split(topv2, "eval")
    parser = Parser.load(model, threads=1)
    settings: dict[str, Json] = {}
    for decoding in decodings_for(parser.definition):
        name = f"{parser.precision} {decoding.name}"
        settings[name] = job.piece(name, partial(score_rows, parser, rows, decoding, name))
    times = job.piece("times", lambda: time_decodings(Parser.load(model), rows))
    return {**facts_of(model), "settings": settings, "times": times, "sure": parser.facts.get("sure")}
