"""What people would use instead: BART-base with `generate`, which writes the tree as text.

The architecture with random weights, made to write the gold tree. Each label with its bracket is one token, as is usual
for this task, words are cut into subwords (those of MiniLM: BART's own cannot be had without its hub, and cut much
alike).
"""

from __future__ import annotations

from typing import Any, cast

import torch
from systems import Gold
from timing import Run
from transformers import BartConfig, BartForConditionalGeneration

from treepiece.text import SubwordTokenizer
from treepiece.trees.frame import Frame
from treepiece.trees.node import Kind

_END = 2
_FIRST = 4  # after the special tokens of BART


def bart_run(gold: Gold, subwords: SubwordTokenizer) -> Run:
    """Return how to parse with BART."""
    torch.manual_seed(0)
    config = BartConfig(
        encoder_layers=6,
        decoder_layers=6,
        d_model=768,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        vocab_size=50265,
        forced_eos_token_id=None,
    )
    model = BartForConditionalGeneration(config)
    model.train(False)
    targets = [[*_serialise(example.frame, subwords), _END] for example in gold.examples]

    @torch.no_grad()
    def run(item: int) -> object:
        (read,) = subwords.encode_batch([gold.texts[item]])
        target = targets[item]

        def only_gold(_: int, written: torch.Tensor) -> list[int]:
            return [target[min(len(written) - 1, len(target) - 1)]]

        return cast(Any, model).generate(
            torch.tensor([read.ids]),
            attention_mask=torch.ones(1, len(read.ids), dtype=torch.long),
            max_new_tokens=len(target),
            num_beams=1,
            do_sample=False,
            prefix_allowed_tokens_fn=only_gold,
        )

    return run


def _serialise(frame: Frame, subwords: SubwordTokenizer) -> list[int]:
    """Return numbers for the tokens of the decoupled tree: labels, subwords, closing brackets."""
    tokens: list[int] = []
    for kind, text in frame.tree.events():
        if kind is Kind.WORD:
            tokens += [_FIRST + 200 + number for number in subwords.encode_batch([text])[0].ids[1:-1]]
        else:
            tokens.append(_FIRST + (hash(text) % 199 if kind is Kind.OPEN else 199))
    return tokens
