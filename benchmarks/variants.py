"""The variants of the TreePiece recipe that `ablations.py` and the reproduction compare."""

from __future__ import annotations

from typing import Any

BASE: dict[str, Any] = {
    "units": {"composed": True, "hinted": True},
    "ema": 0.0,
    "freeze_words": True,
    "batch": 32,
    "dropout": 0.0,
    "precision": "bfloat16",
    "validations": 1,
    "label_smoothing": 0.1,
    "tokenizer": {"merges": 600},
    "ranking": {"weight": 0.0},
    "judge_weight": 1.0,
}
"""What all variants begin with, whatever the recipe says."""
_PLAIN = {"composed": False, "hinted": False}
VARIANTS: dict[str, dict[str, Any]] = {
    "the recipe": {},
    "no judge": {"judge_weight": 0.0},
    "no hints": {"units": {"composed": True, "hinted": False}},
    "not composed": {"units": {"composed": False, "hinted": True}},
    "plain units": {"units": _PLAIN},
    "plain units, no judge": {"judge_weight": 0.0, "units": _PLAIN},
    "plain units, no judge, pretrained": {"judge_weight": 0.0, "units": {**_PLAIN, "pretrained": True}},
    "a ranker": {"ranking": {"weight": 0.5, "share": 0.25}},
    "dropout 0.1": {"dropout": 0.1},
    "products in float32": {"precision": "float32"},
    "batch 64": {"batch": 64},
    "batch 128": {"batch": 128},
    "no label smoothing": {"label_smoothing": 0.0},
    "sampled partitions": {"units": {**BASE["units"], "sampling": 0.5}},
    "average of the weights": {"ema": 0.998},
    "words trained": {"freeze_words": False},
    "0 merges": {"tokenizer": {"merges": 0}},
    "100 merges": {"tokenizer": {"merges": 100}},
    "2000 merges": {"tokenizer": {"merges": 2000}},
}
"""What each variant changes; the rest is as in `BASE`."""
