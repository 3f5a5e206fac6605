"""The parts that are scripts in `benchmarks`: their JSON is kept as it is."""

from __future__ import annotations

from pathlib import Path

from reproduction.data import file_digest, split_files
from reproduction.part import Job, Part
from reproduction.scoring import bundle_of, scores_name
from reproduction.scripts import run_script
from reproduction.store import Json


def tokenizer_part(topv2: Path) -> Part:
    """Return the part that compares vocabularies, and times the tokenizer."""

    def work(job: Job) -> Json:
        return {
            "vocabularies": job.piece("vocabularies", lambda: run_script("vocabulary", topv2=topv2)),
            "times": job.piece("times", lambda: run_script("tokenizer", "--no-growth", topv2=topv2)),
        }

    return Part("tokenizer", "train tree tokenizers and count units", {"data": _data(topv2, "train", "eval")}, work)


def figure_part(topv2: Path) -> Part:
    """Return the part that counts decoder passes by the length of the logical form: the paper's Figure 3."""

    def work(_: Job) -> Json:
        return run_script("steps", "--split", "eval", topv2=topv2)

    return Part("figure3", "count decoder passes of gold trees", {"data": _data(topv2, "train", "eval")}, work)


def latency_part(seeds: dict[str, int], n_rows: int, topv2: Path) -> Part:
    """Return the part that times a trained parser of each kind, with the given seeds, on rows of the eval split."""

    def work(job: Job) -> Json:
        bundles = [f"{kind}={bundle_of(job, kind, seed).resolve()}" for kind, seed in seeds.items()]
        return {
            "seeds": seeds,
            "script": run_script("latency", "--rows", str(n_rows), "--bundles", *bundles, topv2=topv2),
        }

    return Part(
        "latency",
        "time the trained parsers",
        {"data": _data(topv2, "eval"), "rows": n_rows},
        work,
        needs=tuple(scores_name(kind, seed) for kind, seed in seeds.items()),
    )


def _data(topv2: Path, *splits: str) -> Json:
    return {split: file_digest(topv2, split_files(split)) for split in splits}
