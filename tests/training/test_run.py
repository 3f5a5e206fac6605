"""A run learns, goes on exactly where it was, and never loses what it had."""

import errno
import json

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import safetensors.torch  # noqa: E402

from treepiece import files  # noqa: E402
from treepiece.bundle import WEIGHTS  # noqa: E402
from treepiece.data.rows import Row  # noqa: E402
from treepiece.decoding.parse import Parse  # noqa: E402
from treepiece.errors import CheckpointError, DataError, RecipeError  # noqa: E402
from treepiece.models.trained import load_model, save_model  # noqa: E402
from treepiece.text import Subwords  # noqa: E402
from treepiece.training import run  # noqa: E402
from treepiece.training.examples import Example, make_examples  # noqa: E402
from treepiece.training.observer import Observer  # noqa: E402
from treepiece.training.prediction import _outcome, predict  # noqa: E402
from treepiece.training.preparation import Data, hold_out  # noqa: E402
from treepiece.trees.align import Span  # noqa: E402
from treepiece.trees.frame import Frame  # noqa: E402

KINDS = ["treepiece", "ar", "nar"]


class Notes(Observer):
    def __init__(self):
        self.epochs, self.steps, self.remarks = [], [], []

    def step(self, report):
        self.steps.append(report)

    def epoch(self, report):
        self.epochs.append(report)

    def remark(self, text):
        self.remarks.append(text)


def train(folder, data, recipe, *, init=None, stop_after=None):
    notes = Notes()
    if not run.is_begun(folder):
        run.begin(folder, data, recipe, init=init, observer=notes)
    should_stop = (lambda: len(notes.steps) >= stop_after) if stop_after else (lambda: False)
    return run.go_on(folder, data, observer=notes, should_stop=should_stop), notes


def weights(folder):
    return safetensors.torch.load_file(folder / WEIGHTS)


def assert_same_weights(one, other):
    assert weights(one).keys() == weights(other).keys()
    for name, weight in weights(one).items():
        assert torch.equal(weight, weights(other)[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_learns_a_few_rows_by_heart(kind, toy, recipe, tmp_path):
    rows = toy(8)
    settings = recipe(
        model=kind,
        epochs=14,
        batch=8,
        label_smoothing=0.0,
        decoder={"n_heads": 2, "longest": 64, "dropout": 0.0},
        optimizer={
            "learning_rates": {"encoder": 3e-3}
            | ({"units": 3e-3, "spans": 3e-3} if kind == "treepiece" else {"decoder": 3e-3})
        },
    )
    result, _ = train(tmp_path / "model", Data(rows * 40, rows), settings)
    assert result.is_complete
    assert result.em >= 0.9
    trained = load_model(tmp_path / "model")
    outcomes = predict(trained.model, make_examples(rows, trained.subwords)[0])
    assert sum(outcome.is_exact for outcome in outcomes) / len(rows) == pytest.approx(result.em)
    assert trained.facts["validation"]["em"] == result.em


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("treepiece", {"ema": 0.9, "units": {"sampling": 0.3, "composed": True}, "ranking": {"weight": 0.5}}),
        ("ar", {"precision": "bfloat16"}),
        ("nar", {"freeze_words": True}),
    ],
)
def test_an_interrupted_run_ends_with_the_same_weights(kind, changes, toy, recipe, tmp_path):
    data, settings = hold_out(toy(90), recipe(model=kind)), recipe(model=kind, **changes)
    train(tmp_path / "whole", data, settings)
    result, _ = train(tmp_path / "parts", data, settings, stop_after=2)
    assert not result.is_complete
    train(tmp_path / "parts", data, settings, stop_after=5)
    result, notes = train(tmp_path / "parts", data, settings)
    assert result.is_complete
    assert "going on after step 7" in notes.remarks[0]
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")
    assert (tmp_path / "whole" / "log.csv").read_text().count("validation_em,") == 2


def test_a_run_that_dies_without_saving_goes_on_from_what_was_saved_before(toy, recipe, tmp_path, monkeypatch):
    data, settings = hold_out(toy(60), recipe()), recipe(checkpoint_seconds=0.0)
    train(tmp_path / "whole", data, settings)
    step = run.Loop._step
    n = 0

    def die(self, *args):
        nonlocal n
        n += 1
        if n == 6:
            raise SystemExit
        return step(self, *args)

    monkeypatch.setattr(run.Loop, "_step", die)
    with pytest.raises(SystemExit):
        train(tmp_path / "parts", data, settings)
    train(tmp_path / "parts", data, settings)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")


def test_a_run_that_dies_while_it_begins_or_ends_is_no_run(toy, recipe, tmp_path):
    data, settings = hold_out(toy(30), recipe()), recipe(epochs=1)
    run.begin(tmp_path / "model", data, settings, init=None, observer=Observer())
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

    fsync, n = files.os.fsync, 0

    def full(handle):
        nonlocal n
        n += 1
        if n > 1:  # the first is the log
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
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
    assert result.epoch in validated
    assert [report.epoch for report in notes.epochs] == validated
    assert load_model(tmp_path / "model").facts["validation"]["epoch"] == result.epoch


def test_patience_is_tried_where_a_run_validates(toy, recipe, tmp_path):
    still = {"learning_rates": {"encoder": 0, "units": 0, "spans": 0}}
    settings = recipe(epochs=12, validations=4, patience=2, optimizer=still)
    _, notes = train(tmp_path / "model", hold_out(toy(30), settings), settings)
    assert [report.epoch for report in notes.epochs] == [3, 6]


def test_patience_ends_a_run(toy, recipe, tmp_path):
    settings = recipe(epochs=30, patience=2, optimizer={"learning_rates": {"encoder": 0, "units": 0, "spans": 0}})
    result, notes = train(tmp_path / "model", hold_out(toy(40), settings), settings)
    assert result.is_complete
    assert [report.epoch for report in notes.epochs] == [1, 2, 3]
    assert [report.is_best for report in notes.epochs] == [True, False, False]


def test_pretrained_and_composed_units_train(toy, recipe, tmp_path):
    settings = recipe(epochs=1, units={"pretrained": True, "composed": True, "pretraining": {"epochs": 1}})
    assert train(tmp_path / "model", hold_out(toy(60), settings), settings)[0].is_complete
    assert load_model(tmp_path / "model").definition.composed


@pytest.mark.parametrize("kind", KINDS)
def test_a_trained_model_goes_on_with_new_labels(kind, toy, recipe, tmp_path):
    rows = toy(300)
    old = [row for row in rows if row.domain in ("timer", "weather")]
    new = [row for row in rows if row.domain in ("music", "weather")]
    settings = recipe(model=kind, epochs=1)
    train(tmp_path / "old", hold_out(old, settings), settings)
    frozen = recipe(
        model=kind,
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
    assert set(before.facts["skeletons"]) < set(after.facts["skeletons"])
    assert after.facts["before"] == [{name: before.facts[name] for name in ("recipe", "rows", "validation")}]
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
    small = recipe(epochs=1, decoder={"n_heads": 2, "longest": 12}, units={"composed": False})
    train(tmp_path / "old", hold_out(rows, small), small)
    settings = recipe(epochs=1)
    _, notes = train(tmp_path / "new", hold_out(rows, settings), settings, init=tmp_path / "old")
    assert any("too large: the decoder takes 12" in remark for remark in notes.remarks)
    trained = load_model(tmp_path / "new")
    assert trained.facts["recipe"]["decoder"]["longest"] == trained.definition.decoder.longest == 12
    assert trained.facts["recipe"]["units"]["composed"] is trained.definition.composed is False


def test_a_leaf_that_ends_inside_a_word_is_wrong(subword_example):
    example = subword_example
    (span,) = example.spans
    assert _outcome(example, Parse(example.frame.skeleton, (span,), 0.0, 1)).is_exact
    shorter = _outcome(example, Parse(example.frame.skeleton, (Span(span.start, span.end - 1),), 0.0, 1))
    assert not shorter.is_exact
    assert shorter.is_skeleton
    assert shorter.predicted.leaves[0].text == "8"


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
    assert copy.model.parse(utterances, beam=3) == trained.model.parse(utterances, beam=3)
    assert json.loads((tmp_path / "model" / "training.json").read_text())["rows"] == 54


def test_what_cannot_be_trained_says_why(toy, recipe, tmp_path):
    settings = recipe()
    with pytest.raises(DataError, match="two rows or more"):
        hold_out(toy(1), settings)
    data = hold_out(toy(20), settings)
    train(tmp_path / "model", data, settings, stop_after=1)
    with pytest.raises(CheckpointError, match="training run already"):
        run.begin(tmp_path / "model", data, settings, init=None, observer=Observer())
    with pytest.raises(CheckpointError, match="other data rows"):
        train(tmp_path / "model", hold_out(toy(21), settings), settings)
    (tmp_path / "model" / "run" / "last.safetensors").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        train(tmp_path / "model", data, settings)
    with pytest.raises(CheckpointError, match="no training run to go on with"):
        run.go_on(tmp_path / "nothing", data, observer=Observer())
    small = recipe(model="ar", epochs=1)
    train(tmp_path / "ar", data, small)
    with pytest.raises(CheckpointError, match="come to its end"):
        run.go_on(tmp_path / "ar", data, observer=Observer())
    with pytest.raises(RecipeError, match="choose --model ar"):
        run.begin(tmp_path / "other", data, settings, init=tmp_path / "ar", observer=Observer())


def test_rows_that_do_not_fit_are_left_out_and_reported(toy, recipe, tmp_path):
    rows = toy(40)
    long = type(rows[0])(
        rows[0].skeleton, type(rows[0].frame).from_brackets(f"[IN:GET_WEATHER {'rain ' * 60}]"), "weather", 41
    )
    settings = recipe(epochs=1)
    _, notes = train(tmp_path / "model", Data([*rows, long], rows[:5]), settings)
    assert "line 41" in notes.remarks[0]
    assert "too long" in notes.remarks[0]
    assert notes.remarks[1] == "left out 1 of 41 rows"
