"""The variants of the TreePiece recipe that `ablations.py` and the reproduction compare."""

from __future__ import annotations

from typing import Any

BASE: dict[str, Any] = {
    "units": {"composed": False, "hinted": False},
    "ema": 0.0,
    "freeze_words": True,
    "batch": 128,
    "label_smoothing": 0.1,
    "tokenizer": {"merges": 600},
    "ranking": {"weight": 0.0},
    "judge_weight": 0.0,
}
"""What all variants begin with, whatever the recipe says."""
_DEFAULT: dict[str, Any] = {"units": {"composed": True, "hinted": True}}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pretrained": {"units": {"composed": False, "hinted": False, "pretrained": True}},
    "hinted": {"units": {"composed": False, "hinted": True}},
    "composed": {"units": {"composed": True, "hinted": False}},
    "default": _DEFAULT,
    "default, sampling": {"units": {**_DEFAULT["units"], "sampling": 0.5}},
    "default, ema": {**_DEFAULT, "ema": 0.998},
    "default, words trained": {**_DEFAULT, "freeze_words": False},
    "default, ranked": {**_DEFAULT, "ranking": {"weight": 0.5, "share": 0.25}},
    "default, judged": {**_DEFAULT, "judge_weight": 1.0},
    "default, batch 32": {**_DEFAULT, "batch": 32},
    "default, batch 64": {**_DEFAULT, "batch": 64},
    "default, no label smoothing": {**_DEFAULT, "label_smoothing": 0.0},
    "default, 0 merges": {**_DEFAULT, "tokenizer": {"merges": 0}},
    "default, 100 merges": {**_DEFAULT, "tokenizer": {"merges": 100}},
    "default, 2000 merges": {**_DEFAULT, "tokenizer": {"merges": 2000}},
}
"""What each variant changes; the rest is as in `BASE`. "Default" has both what is on by default: unit embeddings that
are composed, and words that hint at labels."""
