"""The models that are compared beside Table 1, each as changes to a recipe.

`EXTENSIONS` are the model of the paper plus what we added, one step at a time, on all of TOPv2; `MERGES` are the same
with another number of merges, and `ABLATIONS` variants of the recipe of the bundled model, in small runs.
"""

from __future__ import annotations

from typing import Any

from experiments.parts import Json

EXTENSIONS: dict[str, Json] = {
    "placeholder-label": {"units": {"placeholder_label": True}},
    "compositional": {"units": {"placeholder_label": True, "compositional": True}},
    "label-logits": {"units": {"placeholder_label": True, "compositional": True, "label_logits": True}},
    "reranker": {
        "units": {"placeholder_label": True, "compositional": True, "label_logits": True},
        "reranker_loss_weight": 1.0,
    },
    "whole-units": {
        "units": {"placeholder_label": True, "compositional": True, "label_logits": True},
        "reranker_loss_weight": 1.0,
        "tokenizer": {"expansion": "whole"},
    },
}
"""Each adds one extension to those before it; with the reranker come its loss on the encoder, and reranking."""
ALL_EXTENSIONS = "whole-units"
"""The model with all extensions, which is trained with several seeds, as those of Table 1 are."""
MERGES = (0, 100, 2000)
"""Numbers of merges, with all extensions but the reranker; 600 is the model `label-logits`."""
MERGES_BASE = "label-logits"

BASE: Json = {
    "units": {"placeholder_label": True, "compositional": True, "label_logits": True},
    "freeze_word_embeddings": True,
    "batch_size": 32,
    "dropout": 0.0,
    "precision": "bfloat16",
    "validations": 1,
    "label_smoothing": 0.1,
    "tokenizer": {"merges": 600},
    "reranker_loss_weight": 1.0,
}
"""What all ablations begin with, whatever the recipe says."""
_PLAIN = {"compositional": False, "label_logits": False}
ABLATIONS: dict[str, Json] = {
    "the recipe": {},
    "no reranker": {"reranker_loss_weight": 0.0},
    "no label logits": {"units": {"label_logits": False}},
    "no compositional embeddings": {"units": {"compositional": False}},
    "no placeholder label": {"units": {"placeholder_label": False}},
    "plain units": {"units": _PLAIN},
    "plain units, no reranker": {"reranker_loss_weight": 0.0, "units": _PLAIN},
    "plain units, no reranker, pretrained": {"reranker_loss_weight": 0.0, "units": {**_PLAIN, "pretrained": True}},
    "dropout 0.1": {"dropout": 0.1},
    "matrix products in float32": {"precision": "float32"},
    "batch size 64": {"batch_size": 64},
    "no label smoothing": {"label_smoothing": 0.0},
    "sampled partitions": {"units": {"sampling": 0.5}},
    "word embeddings trained": {"freeze_word_embeddings": False},
    "whole units": {"tokenizer": {"expansion": "whole"}},
    "0 merges": {"tokenizer": {"merges": 0}},
    "100 merges": {"tokenizer": {"merges": 100}},
    "2000 merges": {"tokenizer": {"merges": 2000}},
}
"""What each ablation changes; the rest is as in `BASE`."""


def merged(settings: Json, changes: Json) -> Json:
    """Return settings with changes; parts that have settings by name are changed, not replaced.

    >>> merged({"units": {"a": 1, "b": 1}, "epochs": 4}, {"units": {"b": 2}})
    {'units': {'a': 1, 'b': 2}, 'epochs': 4}
    """

    def one(before: Any, after: Any) -> Any:  # noqa: ANN401  # settings of any type
        return {**before, **after} if isinstance(before, dict) and isinstance(after, dict) else after

    return {**settings, **{name: one(settings.get(name), value) for name, value in changes.items()}}
