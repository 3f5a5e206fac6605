"""The variants of the TreePiece recipe that `ablations.py` and the reproduction compare."""

from __future__ import annotations

from typing import Any

BASE: dict[str, Any] = {
    "units": {"composed": False},
    "ema": 0.0,
    "freeze_words": True,
    "batch": 128,
    "label_smoothing": 0.1,
    "tokenizer": {"merges": 600},
    "ranking": {"weight": 0.0},
}
"""What all variants begin with, whatever the recipe says."""
_COMPOSED: dict[str, Any] = {"units": {"composed": True}}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pretrained": {"units": {"composed": False, "pretrained": True}},
    "composed": _COMPOSED,
    "composed, sampling": {"units": {"composed": True, "sampling": 0.5}},
    "composed, ema": {**_COMPOSED, "ema": 0.998},
    "composed, words trained": {**_COMPOSED, "freeze_words": False},
    "composed, ranked": {**_COMPOSED, "ranking": {"weight": 0.5, "share": 0.25}},
    "composed, judged": {**_COMPOSED, "judge_weight": 1.0},
    "composed, batch 32": {**_COMPOSED, "batch": 32},
    "composed, batch 64": {**_COMPOSED, "batch": 64},
    "composed, no label smoothing": {**_COMPOSED, "label_smoothing": 0.0},
    "composed, 0 merges": {**_COMPOSED, "tokenizer": {"merges": 0}},
    "composed, 100 merges": {**_COMPOSED, "tokenizer": {"merges": 100}},
    "composed, 2000 merges": {**_COMPOSED, "tokenizer": {"merges": 2000}},
}
"""What each variant changes; the rest is as in `BASE`."""
