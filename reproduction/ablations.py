"""The parts that train variants of the TreePiece recipe on a part of TOPv2, one part each.

All variants see the same rows of the train split for the same number of epochs, and are scored on the same other rows
of the train split after the last epoch. The eval split is not touched.
"""

from __future__ import annotations

import re
from pathlib import Path

from reproduction.data import file_digest, rows_of_split, split_files
from reproduction.part import Job, Part
from reproduction.scripts import load_script
from reproduction.store import Json
from reproduction.training import make_recipe, read_settings, train_in
from treepiece.errors import OptionError

N_SCORED = 4000
_LARGEST_SHARE = 0.25


def variant_names() -> list[str]:
    """Return the names of all variants."""
    return list(load_script("variants").VARIANTS)


def ablation_name(variant: str) -> str:
    """Return the name of the part that trains a variant.

    >>> ablation_name("batch 64")
    'ablations-batch-64'
    """
    return f"ablations-{re.sub(r'[^a-z0-9]+', '-', variant.lower())}"


def ablation_part(variant: str, n_rows: int, epochs: int, topv2: Path, recipes: Path) -> Part:
    """Return the part that trains and scores a variant."""
    variants = load_script("variants")
    if variant not in variants.VARIANTS:
        raise OptionError(f"--variants: there is no {variant!r}: there are {', '.join(map(repr, variants.VARIANTS))}")
    changes = {**variants.BASE, "epochs": epochs, **variants.VARIANTS[variant]}
    settings = read_settings(recipes / "topv2-minilm-treepiece.yaml", changes)

    def work(job: Job) -> Json:
        rows = rows_of_split(topv2, "train")
        n_scored = min(N_SCORED, int(_LARGEST_SHARE * len(rows)))
        data = load_script("ablations").take_rows(rows, n_rows, n_scored)
        facts = train_in(job.model_folder(), data, make_recipe(settings))
        last = facts["last_epoch"]
        return {
            "variant": variant,
            "rows": len(data.train),
            "epochs": epochs,
            "seed": facts["recipe"]["seed"],
            "scored_rows": len(data.validation),
            "em": last["validation_em"],
            "em_s": last["validation_em_s"],
            "rows_per_second": last["rows_per_second"],
        }

    return Part(
        ablation_name(variant),
        f"train the variant {variant!r} on {n_rows:,} rows",
        {"recipe": settings, "rows": n_rows, "data": file_digest(topv2, split_files("train")), "variant": variant},
        work,
    )
