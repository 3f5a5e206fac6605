"""Pretrained embeddings know which units go together, whatever else they are."""

import math
from collections import Counter
from itertools import product
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece import TokenizerConfig, TreePieceTokenizer
from treepiece.data.toy import toy_frames
from treepiece.definition import DecoderConfig
from treepiece.errors import RecipeError, UnitError
from treepiece.tokenizer.assembly import NestSymbols
from treepiece.training.pretraining import (
    MaskedUnitModel,
    _hold_out,
    _mask_units,
    pretrain_units,
)
from treepiece.training.recipe import PretrainingConfig, make_recipe

# Unit 0 has two placeholders, filled by units 1 to 4; unit 4 + i always fills the placeholder of unit i.
N_UNITS = 9
SYMBOLS = NestSymbols.after(N_UNITS)
PLACEHOLDER, OPEN, CLOSE = SYMBOLS.placeholder, SYMBOLS.opening, SYMBOLS.closing


def filled(i):
    return [PLACEHOLDER, OPEN, i, PLACEHOLDER, OPEN, i + 4, CLOSE, CLOSE]


PAIRS = [([0, *filled(i), *filled(j)], 1 + i * j) for i, j in product(range(1, 5), repeat=2)]
ALONE = [([i + 4], 50 * i) for i in range(1, 5)]
QUICK = PretrainingConfig(epochs=2, batch_size=8)


def pretrain(sequences=PAIRS, config=QUICK, seed=0, n_units=N_UNITS, width=16, **options):
    found = pretrain_units(sequences, n_units, width, config, n_heads=2, seed=seed, **options)
    return SimpleNamespace(embeddings=found[0], losses=found[1])


def test_the_same_seed_gives_the_same_result_and_no_other_random_number_changes():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = pretrain()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    again = pretrain()
    assert torch.equal(one.embeddings, again.embeddings)
    assert one.losses == again.losses
    assert not torch.equal(one.embeddings, pretrain(seed=1).embeddings)


def test_a_unit_is_guessed_from_the_unit_that_it_fills():
    """Unit 6 + i always fills the first placeholder of unit i; any of 40 others fills the second."""
    n_units = 6 + 6 + 40
    symbols = NestSymbols.after(n_units)
    before, after = [symbols.placeholder, symbols.opening], [symbols.closing]
    nests = [[i, *before, 6 + i, *after, *before, 12 + j, *after] for i, j in product(range(6), range(40))]
    counts = Counter(number for few in nests for number in few if number < n_units)
    entropy = -sum(n / counts.total() * math.log(n / counts.total()) for n in counts.values())
    # To know which units occur at which place is not enough: the loss has to fall below what that would give.
    by_place = (math.log(6) + math.log(6) + math.log(40)) / 3
    config = PretrainingConfig(epochs=40, batch_size=4, learning_rate=3e-3, holdout=0.2)
    losses = pretrain([(few, 1) for few in nests], config, n_units=n_units, width=32).losses
    assert min(losses) < by_place - 0.5 < entropy
    assert len(losses) < 40


def test_embeddings_are_of_all_units_and_of_the_usual_scale():
    skeletons = Counter(frame.skeleton for frame in toy_frames(200))
    tokenizer = TreePieceTokenizer.train(skeletons, TokenizerConfig(merges=30))
    encoded = zip(tokenizer.encode_batch(skeletons), skeletons.values(), strict=True)
    sequences = [(tokenizer.serialize(unit_ids), count) for unit_ids, count in encoded]
    n_units = len(tokenizer.units)
    embeddings = pretrain(sequences, n_units=n_units, width=24).embeddings
    assert embeddings.shape == (n_units, 24)
    assert not embeddings.requires_grad
    assert embeddings.std().item() == pytest.approx(0.02)


def test_training_stops_when_nothing_improves():
    seen = []
    config = PretrainingConfig(learning_rate=1e-9)
    losses = pretrain(config=config, on_epoch=lambda *report: seen.append(report)).losses
    assert len(losses) == 3
    assert seen == [*enumerate(losses, start=1)]


def test_training_stops_after_the_last_epoch():
    assert len(pretrain(config=PretrainingConfig(epochs=1)).losses) == 1


@pytest.mark.parametrize("sequences", [ALONE, PAIRS[:1], [([0], 1)]], ids=["alone", "one", "one unit"])
def test_sequences_of_which_none_can_be_held_out(sequences):
    assert all(map(math.isfinite, pretrain(sequences).losses))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.99])
def test_every_unit_is_trained_and_only_guessable_ones_are_held_out(share):
    sequences = [*PAIRS, *ALONE]
    train, held_out = _hold_out(sequences, N_UNITS, share, torch.Generator().manual_seed(0))
    assert {number for nests, _ in train for number in nests} == {number for nests, _ in sequences for number in nests}
    if held_out is not train:
        assert all(pair in PAIRS and pair not in train for pair in held_out)
        assert len(train) + len(held_out) == len(sequences)
        assert len(held_out) <= share * len(PAIRS)


@pytest.mark.parametrize("rate", [1e-9, 0.15, 0.5, 1.0])
def test_only_units_are_masked_and_one_or_more_in_each_sequence(rate):
    model = MaskedUnitModel(N_UNITS, 17, 4, DecoderConfig(2))
    rows = [nests for nests, _ in PAIRS] * 100
    symbols = torch.tensor(rows)
    shown, hidden_rows, places = _mask_units(symbols, model, rate, torch.Generator().manual_seed(0))
    chosen = torch.zeros_like(symbols, dtype=torch.bool)
    chosen[hidden_rows, places] = True
    assert torch.equal(shown[~chosen], symbols[~chosen])
    assert (symbols[chosen] < N_UNITS).all()
    assert chosen.any(1).all()
    n = chosen.sum().item()
    rest = (1 - rate) ** 5  # of five units, none would be chosen
    assert n / len(rows) == pytest.approx(5 * rate + rest, rel=0.05)
    assert (shown[chosen] == model.mask_symbol).sum().item() / n == pytest.approx(0.8, abs=0.05)
    assert (shown[chosen] == symbols[chosen]).sum().item() / n == pytest.approx(0.1 + 0.1 / N_UNITS, abs=0.03)


def test_what_fills_up_a_batch_is_not_seen():
    torch.manual_seed(0)
    model = MaskedUnitModel(N_UNITS, 17, 8, DecoderConfig(2)).eval()
    alone = torch.tensor([[0, PLACEHOLDER, OPEN, model.mask_symbol, CLOSE]])
    padded = torch.nn.functional.pad(alone, (0, 3), value=model.mask_symbol)
    row, place = torch.tensor([0]), torch.tensor([3])
    expected = model(alone, torch.ones_like(alone, dtype=torch.bool), row, place)
    torch.testing.assert_close(model(padded, torch.arange(8).unsqueeze(0) < 5, row, place), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask_rate": 0.0}, "units.pretraining.mask_rate: must be greater than 0, got 0"),
        ({"mask_rate": float("nan")}, "units.pretraining.mask_rate: must be greater than 0, got nan"),
        ({"mask_rate": "much"}, "units.pretraining.mask_rate: must be a valid number, got 'much'"),
        ({"epochs": 0}, "units.pretraining.epochs: must be greater than or equal to 1, got 0"),
        ({"batch_size": 1.5}, "units.pretraining.batch_size: must be a valid integer, got 1.5"),
        ({"learning_rate": -1.0}, "units.pretraining.learning_rate: must be greater than 0, got -1"),
        ({"holdout": 1.0}, "units.pretraining.holdout: must be less than 1, got 1"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(RecipeError, match=message):
        make_recipe({"units": {"pretrained": True, "pretraining": options}})


@pytest.mark.parametrize("sequences", [[], [([N_UNITS + 3], 1)]], ids=["none", "other vocabulary"])
def test_sequences_that_cannot_be_trained_on(sequences):
    with pytest.raises(UnitError, match="written with the same 9 units"):
        pretrain(sequences)
