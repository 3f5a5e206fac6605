"""A run learns, goes on exactly where it was, and never loses what it had."""

import csv
import errno
import json
import re

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import safetensors.torch

import treepiece
from treepiece import bundle
from treepiece.bundle import WEIGHTS
from treepiece.data.examples import Example, make_examples, outcome_of
from treepiece.data.rows import Row
from treepiece.decoding.types import DecodingConfig, Hypothesis
from treepiece.errors import CheckpointError, DataError, RecipeError
from treepiece.models.trained import load_model, save_model
from treepiece.progress import NoProgress
from treepiece.text import Subwords
from treepiece.training import run
from treepiece.training.prediction import predict
from treepiece.training.preparation import Data, hold_out
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame

KINDS = ["treepiece", "ar", "nar"]


class Notes:
    """Writes down the progress of a run."""

    def __init__(self):
        self.steps, self.messages = [], []

    def update(self, stage, done, total=None, detail=""):
        if stage == "training":
            self.steps.append(detail)

    def message(self, text):
        self.messages.append(text)

    @property
    def epochs(self):
        """The number of each epoch that was validated, and whether it was the best so far."""
        found = [re.match(r"epoch (\d+)/", text) for text in self.messages]
        return [(int(match[1]), "the best so far" in match.string) for match in found if match]


def train(folder, data, recipe, *, init=None, stop_after=None):
    notes = Notes()
    result = treepiece.train(
        data.train,
        folder,
        recipe=recipe,
        validation=data.validation,
        init=init,
        resume=run.is_begun(folder),
        progress=notes,
        should_stop=lambda: bool(stop_after) and len(notes.steps) >= stop_after,
    )
    return result, notes


def begin(folder, data, recipe, *, init=None):
    return run.begin(folder, data, recipe, init=init, fabric=run.make_fabric(), progress=NoProgress())


def logged(folder, name):
    """Return the values that a run logged under a name, each time that it was started."""
    files = sorted((folder / "log").rglob("metrics.csv"))
    rows = [row for file in files for row in csv.DictReader(file.read_text().splitlines())]
    return [float(row[name]) for row in rows if row.get(name)]


def weights(folder):
    return safetensors.torch.load_file(folder / WEIGHTS)


def assert_same_weights(one, other):
    assert weights(one).keys() == weights(other).keys()
    for name, weight in weights(one).items():
        assert torch.equal(weight, weights(other)[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_learns_a_few_rows_by_heart(kind, toy, recipe, tmp_path):
    rows = toy(8)
    settings = recipe(
        kind=kind,
        epochs=14,
        batch_size=8,
        label_smoothing=0.0,
        dropout=0.0,
        optimizer={
            "learning_rates": {"encoder": 3e-3}
            | ({"units": 3e-3, "spans": 3e-3} if kind == "treepiece" else {"decoder": 3e-3})
        },
    )
    result, _ = train(tmp_path / "model", Data(rows * 40, rows), settings)
    assert result.is_complete
    assert result.validation_em >= 0.9
    trained = load_model(tmp_path / "model")
    outcomes = predict(trained.model, make_examples(rows, trained.subwords)[0], trained.decoding)
    assert sum(outcome.is_exact for outcome in outcomes) / len(rows) == pytest.approx(result.validation_em)
    assert trained.metadata["validation"]["em"] == result.validation_em


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("treepiece", {"units": {"sampling": 0.3, "compositional": True}, "reranker_loss_weight": 0.5}),
        ("treepiece", {"units": {"sampling": 0.3}, "noise": {"share": 0.5}}),
        ("ar", {"precision": "bfloat16"}),
        ("nar", {"freeze_word_embeddings": False}),
    ],
)
def test_an_interrupted_run_ends_with_the_same_weights(kind, changes, toy, recipe, tmp_path):
    data, settings = hold_out(toy(90), recipe(kind=kind)), recipe(kind=kind, **changes)
    train(tmp_path / "whole", data, settings)
    result, _ = train(tmp_path / "parts", data, settings, stop_after=2)
    assert not result.is_complete
    train(tmp_path / "parts", data, settings, stop_after=5)
    result, notes = train(tmp_path / "parts", data, settings)
    assert result.is_complete
    assert "continuing after step 7" in notes.messages[0]
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")
    for name in ("whole", "parts"):
        assert len(logged(tmp_path / name, "validation_em")) == 2


def test_a_run_that_dies_without_saving_goes_on_from_what_was_saved_before(toy, recipe, tmp_path, monkeypatch):
    data, settings = hold_out(toy(60), recipe()), recipe(checkpoint_seconds=0.0)
    train(tmp_path / "whole", data, settings)
    step = run.TrainingLoop._step
    n = 0

    def die(self, *args):
        nonlocal n
        n += 1
        if n == 6:
            raise SystemExit
        return step(self, *args)

    monkeypatch.setattr(run.TrainingLoop, "_step", die)
    with pytest.raises(SystemExit):
        train(tmp_path / "parts", data, settings)
    train(tmp_path / "parts", data, settings)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")


def test_a_run_that_dies_while_it_begins_or_ends_is_no_run(toy, recipe, tmp_path):
    data, settings = hold_out(toy(30), recipe()), recipe(epochs=1)
    begin(tmp_path / "model", data, settings)
    (tmp_path / "model" / "run" / "plan.json").unlink()  # written last in the beginning, deleted first in the end
    assert not run.is_begun(tmp_path / "model")
    assert train(tmp_path / "model", data, settings)[0].is_complete
    assert run.is_finished(tmp_path / "model")


def test_data_that_cannot_be_used_leaves_the_folder_usable(toy, recipe, tmp_path):
    rows, settings = toy(30), recipe(epochs=1)
    bare = Data([Row(row.skeleton) for row in rows], rows)
    with pytest.raises(DataError, match="a tree without an utterance"):
        train(tmp_path / "model", bare, settings)
    assert train(tmp_path / "model", Data(rows, rows), settings)[0].is_complete


def test_a_full_disk_leaves_the_checkpoint_before(toy, recipe, tmp_path, monkeypatch):
    data, settings = hold_out(toy(60), recipe()), recipe(checkpoint_seconds=0.0)
    train(tmp_path / "model", data, settings, stop_after=2)
    last = tmp_path / "model" / "run" / "last.safetensors"
    before = last.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(bundle.os, "fsync", full)
        with pytest.raises(CheckpointError, match=r"No space left on device; the one before is unchanged.*--resume"):
            train(tmp_path / "model", data, settings)
    assert last.read_bytes() == before
    assert [path.name for path in last.parent.iterdir() if path.name.startswith(".")] == []
    assert train(tmp_path / "model", data, settings)[0].is_complete


def test_a_loss_that_is_no_number_ends_a_run(toy, recipe, tmp_path):
    settings = recipe(epochs=20, optimizer={"warmup": 0.0, "clip": 0.0, "learning_rates": {"encoder": 1e30}})
    with pytest.raises(RecipeError, match="the loss is .*: lower the learning rates"):
        train(tmp_path / "model", hold_out(toy(60), settings), settings)


@pytest.mark.parametrize(
    ("validations", "validated"), [(None, [1, 2, 3, 4, 5]), (2, [3, 5]), (1, [5]), (9, [1, 2, 3, 4, 5])]
)
def test_a_run_validates_as_often_as_its_recipe_says_and_at_its_end(validations, validated, toy, recipe, tmp_path):
    settings = recipe(epochs=5, validations=validations)
    result, notes = train(tmp_path / "model", hold_out(toy(30), settings), settings)
    assert result.is_complete
    assert result.best_epoch in validated
    assert [epoch for epoch, _ in notes.epochs] == validated
    assert load_model(tmp_path / "model").metadata["validation"]["epoch"] == result.best_epoch


def test_patience_is_tried_where_a_run_validates(toy, recipe, tmp_path):
    still = {"learning_rates": {"encoder": 0, "units": 0, "spans": 0}}
    settings = recipe(epochs=12, validations=4, patience=2, optimizer=still)
    _, notes = train(tmp_path / "model", hold_out(toy(30), settings), settings)
    assert [epoch for epoch, _ in notes.epochs] == [3, 6]


def test_patience_ends_a_run(toy, recipe, tmp_path):
    settings = recipe(epochs=30, patience=2, optimizer={"learning_rates": {"encoder": 0, "units": 0, "spans": 0}})
    result, notes = train(tmp_path / "model", hold_out(toy(40), settings), settings)
    assert result.is_complete
    assert notes.epochs == [(1, True), (2, False), (3, False)]


def test_pretrained_and_composed_units_train(toy, recipe, tmp_path):
    settings = recipe(epochs=1, units={"pretrained": True, "compositional": True, "pretraining": {"epochs": 1}})
    assert train(tmp_path / "model", hold_out(toy(60), settings), settings)[0].is_complete
    assert load_model(tmp_path / "model").definition.extensions.compositional


@pytest.mark.parametrize("kind", KINDS)
def test_a_trained_model_goes_on_with_new_labels(kind, toy, recipe, tmp_path):
    rows = toy(300)
    old = [row for row in rows if row.domain in ("timer", "weather")]
    new = [row for row in rows if row.domain in ("music", "weather")]
    settings = recipe(kind=kind, epochs=1)
    train(tmp_path / "old", hold_out(old, settings), settings)
    frozen = recipe(
        kind=kind,
        epochs=1,
        optimizer={
            "learning_rates": dict.fromkeys(
                ["encoder", "units", "spans"] if kind == "treepiece" else ["encoder", "decoder"], 0.0
            )
            | ({"length": 0.0} if kind == "nar" else {})
        },
    )
    train(tmp_path / "new", hold_out(new, frozen), frozen, init=tmp_path / "old")
    before, after = load_model(tmp_path / "old"), load_model(tmp_path / "new")
    assert set(before.definition.labels) < set(after.definition.labels)
    assert set(before.metadata["skeletons"]) < set(after.metadata["skeletons"])
    assert after.metadata["before"] == [{name: before.metadata[name] for name in ("recipe", "rows", "validation")}]
    # With learning rates of zero nothing is learned, so whatever both know they score alike.
    table = "units.embedding.tables.0" if kind == "treepiece" else "decoder.embedding.tables.0"
    if kind == "treepiece":
        names = [[str(unit) for unit in model.definition.tokenizer.units] for model in (before, after)]
    else:
        names = [model.definition.labels for model in (before, after)]
    one, other = (model.model.state_dict()[table] for model in (before, after))
    for name in names[0]:
        assert torch.equal(one[names[0].index(name)], other[names[1].index(name)])
    examples = make_examples(rows, after.subwords)[0]
    assert all(outcome.is_valid for outcome in predict(after.model, examples))


def test_what_goes_on_from_a_bundle_keeps_its_sizes(toy, recipe, tmp_path):
    rows = toy(60)
    small = recipe(epochs=1, decoder={"n_heads": 2, "max_length": 12}, units={"compositional": False})
    train(tmp_path / "old", hold_out(rows, small), small)
    settings = recipe(epochs=1)
    _, notes = train(tmp_path / "new", hold_out(rows, settings), settings, init=tmp_path / "old")
    assert any("too large: the decoder takes 12" in message for message in notes.messages)
    trained = load_model(tmp_path / "new")
    assert trained.metadata["recipe"]["decoder"]["max_length"] == trained.definition.decoder.max_length == 12
    assert trained.metadata["recipe"]["units"]["compositional"] is trained.definition.extensions.compositional is False


def test_a_leaf_that_ends_inside_a_word_is_wrong(subword_example):
    example = subword_example
    (span,) = example.spans
    assert outcome_of(example, hypothesis(example, span)).is_exact
    shorter = outcome_of(example, hypothesis(example, Span(span.start, span.end - 1)))
    assert not shorter.is_exact
    assert shorter.is_skeleton
    assert shorter.predicted.leaves[0].text == "8"


def hypothesis(example, span):
    return Hypothesis.of_parts(example.frame.skeleton, (span,), 0.0, (0.0,), passes=1)


@pytest.fixture
def subword_example():
    frame = Frame.from_brackets("[IN:A at [SL:B 8am ] ]", "at 8am")
    offsets = (Span(0, 2), Span(3, 4), Span(4, 6))
    return Example(frame, Subwords((1, 2, 3, 4, 5), offsets), (Span(1, 3),))


def test_bundles_are_saved_and_loaded(toy, recipe, tmp_path):
    settings = recipe(epochs=1)
    train(tmp_path / "model", hold_out(toy(60), settings), settings)
    trained = load_model(tmp_path / "model")
    save_model(tmp_path / "copy", trained)
    copy = load_model(tmp_path / "copy")
    utterances = trained.subwords.encode_batch([row.frame.utterance for row in toy(30, seed=3)])
    for config in (trained.decoding, DecodingConfig(beam=3)):
        assert copy.model.parse(utterances, config, nbest=3) == trained.model.parse(utterances, config, nbest=3)
    assert copy.decoding == trained.decoding
    assert json.loads((tmp_path / "model" / "training.json").read_text())["rows"] == 54


def test_what_cannot_be_trained_says_why(toy, recipe, tmp_path):
    settings = recipe()
    with pytest.raises(DataError, match="two rows or more"):
        hold_out(toy(1), settings)
    data = hold_out(toy(20), settings)
    train(tmp_path / "model", data, settings, stop_after=1)
    with pytest.raises(CheckpointError, match="training run already"):
        begin(tmp_path / "model", data, settings)
    with pytest.raises(CheckpointError, match="other data rows"):
        train(tmp_path / "model", hold_out(toy(21), settings), settings)
    (tmp_path / "model" / "run" / "last.safetensors").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        train(tmp_path / "model", data, settings)
    with pytest.raises(CheckpointError, match="no training run to continue"):
        run.reopen(tmp_path / "nothing", data)
    small = recipe(kind="ar", epochs=1)
    train(tmp_path / "ar", data, small)
    with pytest.raises(RecipeError, match="choose --kind ar"):
        begin(tmp_path / "other", data, settings, init=tmp_path / "ar")


def test_a_complete_run_gives_its_result_and_a_run_that_is_not_there_begins(toy, recipe, tmp_path):
    data, settings, notes = hold_out(toy(30), recipe()), recipe(epochs=1), Notes()
    again = {"recipe": settings, "validation": data.validation, "resume": True, "progress": notes}
    first = treepiece.train(data.train, tmp_path / "model", **again)
    assert "no run to continue: a new one begins" in notes.messages[0]
    assert treepiece.train(data.train, tmp_path / "model", **again) == first
    assert "this training is complete" in notes.messages[-1]


def test_sampled_partitions_change_from_epoch_to_epoch_and_make_the_same_trees(toy, recipe, tmp_path, monkeypatch):
    drawn = []
    sample = run.TrainingLoop._sample_units

    def remember(loop, examples):
        drawn.append(sample(loop, examples))
        return drawn[-1]

    monkeypatch.setattr(run.TrainingLoop, "_sample_units", remember)
    settings = recipe(epochs=2, units={"sampling": 0.1})
    for name in ("one", "same"):
        train(tmp_path / name, hold_out(toy(90), settings), settings)
    units = [[example.unit_ids for example in examples] for examples in drawn]
    assert units[0] == units[2] != units[1] == units[3]
    tokenizer = load_model(tmp_path / "one").definition.tokenizer
    for example in drawn[0]:
        assert tokenizer.decode(example.unit_ids) == example.frame.skeleton


def test_noise_changes_from_epoch_to_epoch_and_with_the_order_of_the_rows(toy, recipe, tmp_path, monkeypatch):
    drawn = []
    add_noise = run.TrainingLoop._add_noise

    def remember(loop, examples):
        drawn.append([example.frame.utterance for example in add_noise(loop, examples)])
        return add_noise(loop, examples)

    monkeypatch.setattr(run.TrainingLoop, "_add_noise", remember)
    for name, shuffle_seed in ("one", 0), ("same", 0), ("other", 1):
        settings = recipe(noise={"share": 0.5}, shuffle_seed=shuffle_seed)
        train(tmp_path / name, hold_out(toy(90), settings), settings)
    assert drawn[:2] == drawn[2:4]
    assert len(set(map(tuple, drawn))) == 4


def test_rows_that_do_not_fit_are_left_out_and_reported(toy, recipe, tmp_path):
    rows = toy(40)
    long = type(rows[0])(
        rows[0].skeleton, type(rows[0].frame).from_brackets(f"[IN:GET_WEATHER {'rain ' * 60}]"), "weather", 41
    )
    settings = recipe(epochs=1)
    _, notes = train(tmp_path / "model", Data([*rows, long], rows[:5]), settings)
    assert "line 41" in notes.messages[0]
    assert "too long" in notes.messages[0]
    assert notes.messages[1] == "left out 1 of 41 rows"
