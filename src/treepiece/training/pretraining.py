"""Pretrains the embeddings of the units: masked units are guessed from the rest of a skeleton (the paper, Appendix E).

The corpus is every skeleton of the training data, written with placeholder nests (see `tokenizer.assembly`):

    U1 _ ( MASK ) _ ( U3 _ ( U4 ) )   ->   U2

Skeletons of one unit provide no context, and most rows are of that kind: 86 % in TOPv2. They only teach how frequent a
unit is, so they are sampled less (see `_train_epoch`), but not left out, because many units only occur alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor, nn

from treepiece.definition import DecoderConfig
from treepiece.errors import UnitError
from treepiece.models.batch import pad
from treepiece.models.layers import DROPOUT, Attention, Embedding, positions
from treepiece.tokenizer.assembly import NestSymbols
from treepiece.training.recipe import PretrainingConfig

Corpus = Sequence[tuple[Sequence[int], int]]
"""Distinct skeletons, as `write_nests` writes them, and how often each occurs."""

_STD = 0.02  # as `Embedding` is initialised
_PATIENCE = 2
_LEAST_GAIN = 1e-3  # nats; less is noise
_MASKED, _RANDOM = 0.8, 0.1  # of the positions to guess, as in BERT; the others keep their unit


class MaskedUnitModel(nn.Module):
    """Guesses masked units: one layer of attention over the sequence, and the embeddings as the classifier."""

    def __init__(self, n_units: int, max_length: int, width: int, config: DecoderConfig) -> None:
        super().__init__()
        self.n_units = n_units
        self.mask_symbol = NestSymbols.after(n_units).closing + 1
        self.embedding = Embedding((self.mask_symbol + 1, max_length), width)
        self.attention = Attention(width, config)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.attention_norm, self.forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(DROPOUT)
        self.bias = nn.Parameter(torch.zeros(n_units))

    @property
    def units(self) -> Tensor:
        """The embeddings of the units. Shape: (units, width)."""
        return self.embedding.symbols[: self.n_units]

    def forward(self, symbols: Tensor, mask: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        """Return the logits of the unit at some positions.

        There is one layer, so only the states of these positions are computed. Shape: symbols and mask, True for
        symbols, (batch, n); rows and places (guesses); result (guesses, units).
        """
        states = self.embedding(symbols, positions(symbols))
        x = states[rows, places].unsqueeze(1)
        found = self.attention(x, states[rows], mask[rows].unsqueeze(1))
        x = self.attention_norm(x + self.dropout(found))
        x = self.forward_norm(x + self.dropout(self.feed_forward(x)))
        return nn.functional.linear(x.squeeze(1), self.units, self.bias)


def pretrain_units(
    sequences: Corpus,
    n_units: int,
    width: int,
    config: PretrainingConfig,
    *,
    n_heads: int,
    seed: int,
    on_epoch: Callable[[int, float], None] | None = None,
) -> tuple[Tensor, list[float]]:
    """Return embeddings of all units, learned from the distinct skeletons (see `write_nests`) and their counts.

    They are those of the best epoch, scaled like new ones; next to them is the held-out loss after each epoch, in nats.
    Training stops when it no longer improves. `on_epoch` is called with the number of each epoch, from 1, and its loss.
    Shape: embeddings (units, width).
    """
    if not sequences or max(max(nests) for nests, _ in sequences) > NestSymbols.after(n_units).closing:
        raise UnitError(f"pretraining needs one or more sequences written with the same {n_units:,} units")
    generator = Generator().manual_seed(seed)
    train, held_out = _hold_out(sequences, n_units, config.holdout, generator)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the CPU's only: no other is restored afterwards
        model = MaskedUnitModel(n_units, max(len(nests) for nests, _ in sequences), width, DecoderConfig(n_heads))
        optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=0.01)
        losses: list[float] = []
        best, least, best_epoch = model.units.detach().clone(), float("inf"), 0
        while len(losses) < min(config.epochs, best_epoch + _PATIENCE):
            _train_epoch(model, optimizer, train, config, generator)
            losses.append(_measure(model, held_out, config.batch_size))
            if losses[-1] < least - _LEAST_GAIN:
                best, least, best_epoch = model.units.detach().clone(), losses[-1], len(losses)
            if on_epoch:
                on_epoch(len(losses), losses[-1])
    return best * (_STD / best.std()), losses


def _hold_out(sequences: Corpus, n_units: int, share: float, generator: Generator) -> tuple[Corpus, Corpus]:
    """Return the sequences to train on, and those to evaluate on, which have more than one unit.

    No unit occurs only in held-out sequences, because it would stay untrained and could not be guessed.
    """
    units = [{number for number in nests if number < n_units} for nests, _ in sequences]
    n_users = Counter(unit for few in units for unit in few)
    most = int(share * sum(len(nests) > 1 for nests, _ in sequences))
    held_out: set[int] = set()
    for number in torch.randperm(len(sequences), generator=generator).tolist():
        if len(held_out) < most and len(sequences[number][0]) > 1 and all(n_users[unit] > 1 for unit in units[number]):
            held_out.add(number)
            n_users.subtract(units[number])
    train = [pair for number, pair in enumerate(sequences) if number not in held_out]
    return train, [sequences[number] for number in sorted(held_out)] or train


def _train_epoch(
    model: MaskedUnitModel,
    optimizer: torch.optim.Optimizer,
    sequences: Corpus,
    config: PretrainingConfig,
    generator: Generator,
) -> None:
    """Train on one epoch: draw as many sequences as there are, and take a step for each batch."""
    model.train()
    # In proportion to the square root of their counts. In proportion to the counts, 86 % of the drawn sequences would
    # be single units (38 % with the root, in TOPv2) and a skeleton that occurs once would be drawn once in 18 epochs;
    # with equal weights nothing would be learned about frequencies.
    weights = torch.tensor([count for _, count in sequences], dtype=torch.float64).sqrt()
    drawn = torch.multinomial(weights, len(sequences), replacement=True, generator=generator).tolist()
    nests = sorted((sequences[number][0] for number in drawn), key=len)  # similar lengths together: little padding
    starts = torch.arange(0, len(nests), config.batch_size)
    for start in starts[torch.randperm(len(starts), generator=generator)].tolist():
        symbols = pad(nests[start : start + config.batch_size], model.mask_symbol)
        shown, rows, places = _mask_units(symbols, model, config.mask_rate, generator)
        logits = model(shown, symbols != model.mask_symbol, rows, places)
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(logits, symbols[rows, places]))
        optimizer.step()


def _mask_units(symbols: Tensor, model: MaskedUnitModel, rate: float, generator: Generator) -> tuple[Tensor, ...]:
    """Return the symbols to show, and the rows and positions of the units to guess, at least one in each row.

    Shape: symbols, padded with ids that are not units, and those to show (batch, n); rows and positions (guesses).
    """
    scores = torch.rand(symbols.shape, generator=generator).masked_fill(symbols >= model.n_units, 2)
    rows, places = ((scores < rate) | (scores == scores.amin(1, keepdim=True))).nonzero(as_tuple=True)
    fate = torch.rand(rows.shape, generator=generator)
    other = torch.randint(model.n_units, rows.shape, generator=generator)
    shown = symbols.clone()
    shown[rows, places] = torch.where(fate < _MASKED + _RANDOM, other, symbols[rows, places])
    shown[rows[fate < _MASKED], places[fate < _MASKED]] = model.mask_symbol
    return shown, rows, places


@torch.no_grad()
def _measure(model: MaskedUnitModel, sequences: Corpus, batch: int) -> float:
    """Return the mean loss with each unit masked in turn; it is deterministic, so that epochs can be compared."""
    model.eval()
    units = [(nests, place) for nests, _ in sequences for place, number in enumerate(nests) if number < model.n_units]
    units.sort(key=lambda unit: len(unit[0]))
    total = 0.0
    for start in range(0, len(units), batch):
        nests, hidden = zip(*units[start : start + batch], strict=True)
        symbols, rows, places = pad(nests, model.mask_symbol), torch.arange(len(nests)), torch.tensor(hidden)
        shown = symbols.index_put((rows, places), torch.tensor(model.mask_symbol))
        logits = model(shown, symbols != model.mask_symbol, rows, places)
        total += nn.functional.cross_entropy(logits, symbols[rows, places], reduction="sum").item()
    return total / len(units)
