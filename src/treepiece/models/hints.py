"""Which labels the words of an utterance hint at.

Before a unit is written, one query reads the whole utterance, and most units are a whole tree: one vector has to tell
of all its slots at once. Beside it, every subword votes for each label by itself, and the most convinced one counts:

    hint(label | utterance) = max over the subwords of vote(label) . state(subword) + bias(label)
    logit(unit)             = the decoder's + sum over the labels in the unit of hint(label)

"wake me at 8" has a subword that stands for SL:DATE_TIME and none that stands for SL:ALARM_NAME: a unit gains from the
first, as often as it has it, and loses from the second.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treepiece.tokenizer.vocabulary import Vocabulary

_STD = 0.02  # as in `Embedding`


def label_counts(vocabulary: Vocabulary) -> Tensor:
    """Return how often each unit has each label. Shape: (units, labels)."""
    counts = torch.zeros(len(vocabulary), len(vocabulary.labels))
    for unit_id, shape in enumerate(vocabulary.shapes):
        for token in shape:
            if token >= 0:  # neither a bracket nor a placeholder
                counts[unit_id, token] += 1
    return counts


class LabelHints(nn.Module):
    """Scores units by the labels that they have."""

    counts: Tensor

    def __init__(self, vocabulary: Vocabulary, width: int) -> None:
        super().__init__()
        # Not saved: the vocabulary is, and it gives the same again.
        self.register_buffer("counts", label_counts(vocabulary), persistent=False)
        self.vote = nn.Linear(width, len(vocabulary.labels))
        nn.init.normal_(self.vote.weight, std=_STD)
        nn.init.zeros_(self.vote.bias)

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what is to be added to the logits of the units; without a mask, all states are looked at.

        Shape: states (batch, n, width), mask (batch, n), result (batch, units).
        """
        votes: Tensor = self.vote(states)
        if mask is not None:
            votes = votes.masked_fill(~mask.unsqueeze(2), torch.finfo(votes.dtype).min)
        return nn.functional.linear(votes.amax(1), self.counts)
