"""The parts that score a trained model on the whole eval split, as its graphs answer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from reproduction.data import file_digest, rows_of_split, split_files
from reproduction.exporting import exported
from reproduction.part import Job, Part
from reproduction.sources import KINDS, Taken, model_of, train_name
from reproduction.store import Json
from reproduction.training import facts_of

VERSION = 2
"""Of what is measured: raise it, and results that were made before are made again."""
_BUNDLE = "bundle"


def scores_name(kind: str, seed: int) -> str:
    """Return the name of the part that scores a model."""
    return f"scores-{kind}-{seed}"


def scores_part(kind: str, seed: int, topv2: Path, taken: Taken | None) -> Part:
    """Return the part that exports a model and scores it on the eval split."""

    def work(job: Job) -> Json:
        return _score_model(job, model_of(job, kind, seed, taken), topv2)

    data = {split: file_digest(topv2, split_files(split)) for split in ("train", "eval")}
    return Part(
        scores_name(kind, seed),
        f"export the {KINDS[kind]} parser of seed {seed} and score it on TOPv2 eval",
        {"data": data, "version": VERSION},
        work,
        needs=(train_name(kind, seed),),
        keeps=True,
    )


def bundle_of(job: Job, kind: str, seed: int) -> Path:
    """Return the exported bundle of a model that has been scored."""
    return job.needed_files(scores_name(kind, seed)) / _BUNDLE


def _score_model(job: Job, model: Path, topv2: Path) -> Json:
    """Return the scores: with the int8 graphs in all ways to search, with the float graphs greedily.

    And in PyTorch what a judge would write, if there is one.
    """
    from reproduction.answers import score_rows, time_decodings
    from reproduction.decodings import GREEDY, decodings_for
    from reproduction.writing import score_writer
    from treepiece.runtime.graphs import Precision
    from treepiece.runtime.parser import Parser

    folder = job.folder / _BUNDLE
    graphs = exported(model, folder, topv2)
    rows = rows_of_split(topv2, "eval")
    # One thread a row and a row a core does more than all threads for each row; only times want those.
    small, exact = (
        Parser.load(folder, precision=precision, threads=1) for precision in (Precision.INT8, Precision.FLOAT)
    )
    wanted = [(small, decoding) for decoding in decodings_for(small.definition)] + [(exact, GREEDY)]
    settings: dict[str, Json] = {}
    for parser, decoding in wanted:
        name = f"{parser.precision} {decoding.name}"
        settings[name] = job.piece(name, partial(score_rows, parser, rows, decoding, name))
    times = job.piece("times", lambda: time_decodings(Parser.load(folder, precision=Precision.INT8), rows))
    written = job.piece("judge writes", lambda: score_writer(model, rows))
    return {**facts_of(model), "export": graphs, "settings": settings, "times": times, "judge_writes": written}
