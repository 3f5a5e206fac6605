"""`treepiece train` and `treepiece evaluate`, from the outside."""

import json
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import yaml
from tiny import SETTINGS

from treepiece.cli.main import app
from treepiece.data.toy import toy_rows
from treepiece.errors import TreepieceError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_encoder):
    """A folder with data, a recipe for a very small model, and a model trained with it."""
    folder = tmp_path_factory.mktemp("commands")
    for split, seed, n in (("train", 0, 120), ("eval", 1, 40)):
        lines = [f"{domain}\t{utterance}\t{parse}" for domain, utterance, parse in toy_rows(n, seed)]
        header = "domain\tutterance\tsemantic_parse\n"
        (folder / f"toy_{split}.tsv").write_text(header + "\n".join(lines) + "\n", encoding="utf-8")
    settings = {"encoder": str(tiny_encoder), **SETTINGS, "epochs": 1}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(settings))
    run("train", folder, "--output", folder / "model", "--recipe", folder / "recipe.yaml")
    return folder


def run(*args):
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def evaluate(*args):
    return json.loads(run("evaluate", *args, "--json").stdout)


def test_training_ends_with_a_bundle(folder):
    assert json.loads((folder / "model" / "manifest.json").read_text())["kind"] == "treepiece"
    assert not (folder / "model" / "run").exists()
    (log,) = (folder / "model" / "log").rglob("metrics.csv")
    assert "validation_em" in log.read_text()


def test_json_for_machines(folder, tmp_path):
    out = run(
        "train", folder, "--output", tmp_path / "m", "--recipe", folder / "recipe.yaml", "--kind", "nar", "--json"
    ).stdout
    assert json.loads(out)["kind"] == "nar"


def test_evaluation_has_the_figures(folder):
    scores = evaluate("--model", folder / "model", folder)
    assert scores["rows"] == 40
    assert scores["invalid"] == 0
    assert 0 <= scores["em_interval"][0] <= scores["em"] <= scores["em_s"] <= 1
    assert sum(part["rows"] for part in scores["by_domain"].values()) == 40
    assert sum(part["rows"] for part in scores["by_seen"].values()) == 40
    assert scores["passes"] >= 1
    assert evaluate("--model", folder / "model", folder, "--limit", 7)["rows"] == 7


def test_evaluation_draws_tables(folder):
    out = run("evaluate", "--model", folder / "model", folder).stdout
    for word in ("EM-S", "domain", "depth", "skeleton", "Label errors"):
        assert word in out


def test_a_model_compared_with_itself_does_not_differ(folder):
    test = evaluate("--model", folder / "model", folder, "--compare", folder / "model")["compare"]
    assert test["difference"] == 0
    assert test["p_value"] == 1
    assert "Against" in run("evaluate", "--model", folder / "model", folder, "--compare", folder / "model").stdout


def test_all_rows_are_compared_wherever_leaves_end(folder, tmp_path):
    for name, seed in (("one", 1), ("other", 2)):
        run("train", folder, "--output", tmp_path / name, "--recipe", folder / "recipe.yaml", "--seed", seed)
    one, other = (evaluate("--model", tmp_path / name, folder) for name in ("one", "other"))
    test = evaluate("--model", tmp_path / "one", folder, "--compare", tmp_path / "other")["compare"]
    assert test["difference"] == pytest.approx(one["em"] - other["em"])


def test_a_folder_with_other_files_is_left_alone(folder, tmp_path):
    (tmp_path / "config.json").write_text("mine")
    with pytest.raises(TreepieceError, match="this folder has other files in it"):
        run("train", folder, "--output", tmp_path, "--recipe", folder / "recipe.yaml")
    assert (tmp_path / "config.json").read_text() == "mine"


def test_misses_are_written(folder, tmp_path):
    scores = evaluate("--model", folder / "model", folder, "--errors", tmp_path / "misses.jsonl")
    misses = [json.loads(line) for line in (tmp_path / "misses.jsonl").read_text().splitlines()]
    assert len(misses) == round((1 - scores["em"]) * 40)
    assert {"utterance", "gold", "predicted", "wrong"} <= misses[0].keys()


def test_labels_that_training_had_not_are_misses(folder, tmp_path):
    data = tmp_path / "new.tsv"
    data.write_text("fly me to rome\t[IN:FLY fly me to [SL:CITY_OF_DREAMS rome ] ]\n")
    scores = evaluate("--model", folder / "model", data)
    assert (scores["em"], scores["invalid"]) == (0, 0)
    assert list(scores["by_seen"]) == ["unseen"]


def test_a_slot_without_words_can_be_trained_and_evaluated(folder, tmp_path):
    data = tmp_path / "empty.tsv"
    data.write_text("wake me up\t[IN:CREATE_ALARM wake me up [SL:DATE_TIME ] ]\n" * 4)
    for kind in ("treepiece", "ar", "nar"):
        run("train", data, "--output", tmp_path / kind, "--recipe", folder / "recipe.yaml", "--kind", kind)
        assert evaluate("--model", tmp_path / kind, data)["rows"] == 4


def test_too_long_utterances_are_counted(folder, tmp_path):
    data = tmp_path / "long.tsv"
    data.write_text(f"{'rain ' * 99}\t[IN:GET_WEATHER {'rain ' * 99}]\nrain\t[IN:GET_WEATHER rain ]\n")
    result = run("evaluate", "--model", folder / "model", data, "--json")
    assert json.loads(result.stdout)["unparsable"] == 1
    assert "too long" in result.stderr


def test_a_finished_run_is_not_overwritten(folder):
    with pytest.raises(TreepieceError, match="training run already"):
        run("train", folder, "--output", folder / "model", "--recipe", folder / "recipe.yaml")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--recipe", "nothing.yaml"], "nothing.yaml: cannot be read"),
        (["--kind", "gpt"], "kind: must be 'treepiece', 'ar' or 'nar', got 'gpt'"),
        (["--epochs", "0"], "epochs: must be greater than or equal to 1, got 0"),
        (["--encoder", "{folder}"], "cannot be loaded"),
        (["--init", "{folder}"], "not a bundle"),
        (["--validation-split", "dev"], "no files named DOMAIN_dev.tsv"),
        (["--output", "{folder}/file/model"], "cannot be written"),
    ],
)
def test_wrong_options_say_what_is_wrong(folder, tmp_path, args, message):
    (tmp_path / "file").touch()
    given = [arg.format(folder=tmp_path) for arg in args]
    with pytest.raises(TreepieceError) as caught:
        run("train", folder, "--output", tmp_path / "model", *given)
    assert message in str(caught.value)


def test_data_that_cannot_be_trained_on_says_why(folder, tmp_path):
    recipe = ("--recipe", folder / "recipe.yaml", "--output", tmp_path / "model")
    for text, message in (
        ("", "no row in it can be read"),
        ("hi\t[IN:HELLO hi ]\n", "two rows or more"),
        ("[A [B ] ]\n[A ]\n", "a tree without an utterance"),
        ("[IN:A [SL:B ] ]\n[IN:A ]\n", "a tree without an utterance"),
    ):
        (tmp_path / "data.tsv").write_text(text)
        with pytest.raises(TreepieceError, match=message):
            run("train", tmp_path / "data.tsv", *recipe)


def test_a_file_has_no_splits_to_validate_with(folder, tmp_path):
    with pytest.raises(TreepieceError, match="no folder of splits"):
        run("train", folder / "toy_train.tsv", "--output", tmp_path / "model", "--validation-split", "eval")


def test_resuming_a_finished_run_does_nothing(folder):
    before = (folder / "model" / "weights.safetensors").stat().st_mtime_ns
    result = run("train", folder, "--output", folder / "model", "--resume", "--json")
    assert "this training is complete" in result.stderr
    assert json.loads(result.stdout)["rows"] == 108
    assert (folder / "model" / "weights.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: (model / "weights.safetensors").write_bytes(b"x"), "checksum does not match"),
        (lambda model: (model / "config.json").unlink(), "config.json: missing"),
        (lambda model: (model / "manifest.json").write_text("{"), "not JSON"),
        (lambda model: (model / "manifest.json").write_text("[]"), "expected a JSON object"),
        (lambda model: (model / "manifest.json").write_text('{"format": "x"}'), "'format' is 'x'"),
        (lambda model: shutil.rmtree(model), "no such folder"),
        (lambda model: (model / "manifest.json").unlink(), "not a bundle"),
        (
            lambda model: (model / "manifest.json").write_text(
                (model / "manifest.json").read_text().replace('"version": 2', '"version": 99')
            ),
            "newer than this treepiece reads",
        ),
        (
            lambda model: (model / "manifest.json").write_text(
                (model / "manifest.json").read_text().replace('"config.json"', '"../config.json"')
            ),
            "outside of the bundle",
        ),
    ],
)
def test_a_damaged_bundle_is_refused(folder, tmp_path, change, message):
    shutil.copytree(folder / "model", tmp_path / "model")
    change(tmp_path / "model")
    with pytest.raises(TreepieceError, match=message):
        run("evaluate", "--model", tmp_path / "model", folder)


def test_greedy_evaluation_takes_fewer_passes_than_reranking_every_parse(folder, tmp_path):
    settings = yaml.safe_load((folder / "recipe.yaml").read_text())
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({**settings, "reranker_loss_weight": 1.0}))
    run("train", folder, "--output", tmp_path / "model", "--recipe", tmp_path / "recipe.yaml")
    greedy, always = (evaluate("--model", tmp_path / "model", folder, "--rerank-threshold", p) for p in (0, 1))
    assert greedy["passes"] < always["passes"]
    with pytest.raises(TreepieceError, match="--rerank-threshold must be a number from 0 to 1, got 2"):
        evaluate("--model", tmp_path / "model", folder, "--rerank-threshold", 2)


def test_a_model_is_averaged_with_the_one_that_it_began_from(folder, tmp_path):
    start = ("train", folder, "--recipe", folder / "recipe.yaml", "--init", folder / "model")
    second, third, other, averaged = (tmp_path / name for name in ("second", "third", "other", "averaged"))
    run(*start, "--output", second)
    command = ("average", folder / "model", second, "--data", folder)
    summary = json.loads(run(*command, "--output", averaged, "--first-weight", 0.5, "--json").stdout)
    assert {**summary, "validation_em": 0} == {
        "first_weight": 0.5,
        "validation_rows": 12,
        "validation_em": 0,
        "folder": str(averaged),
    }
    assert evaluate("--model", averaged, folder)["rows"] == 40
    run(*start, "--output", third, "--shuffle-seed", 1)
    assert (third / "weights.safetensors").read_bytes() != (second / "weights.safetensors").read_bytes()
    three = ("average", folder / "model", second, third, "--data", folder)
    summary = json.loads(run(*three, "--output", tmp_path / "three", "--json").stdout)
    assert summary["first_weight"] in (0.0, 0.15, 0.3, 0.5)
    run(*start, "--output", other, "--seed", 7)
    new = ("--output", tmp_path / "x")
    for args, message in (
        ((*command, other, *new), "held out other rows than .*second, its seed is 7"),
        ((*command, "--output", averaged), "there is a model already"),
        ((*command, *new, "--first-weight", 1.5), "--first-weight must be a number from 0 to 1, got 1.5"),
        (("average", tmp_path, second, "--data", folder, *new), "not a bundle"),
        (("average", second, "--data", folder, *new), "two models or more, got 1"),
    ):
        with pytest.raises(TreepieceError, match=message):
            run(*args)


def test_resuming_with_other_settings_is_refused(folder, tmp_path):
    from treepiece.data.reader import load_rows
    from treepiece.progress import NoProgress
    from treepiece.training import run as runs
    from treepiece.training.preparation import hold_out
    from treepiece.training.recipe import read_recipe

    recipe = read_recipe(folder / "recipe.yaml")
    data = hold_out(load_rows(folder), recipe)
    runs.begin(tmp_path / "model", data, recipe, init=None, fabric=runs.make_fabric(), progress=NoProgress())
    with pytest.raises(TreepieceError, match="the run began with epochs = 1, now it is 2"):
        run("train", folder, "--output", tmp_path / "model", "--resume", "--epochs", 2)
    run("train", folder, "--output", tmp_path / "model", "--resume")
    assert (tmp_path / "model" / "manifest.json").is_file()


def test_python_trains_and_evaluates_as_the_commands_do(folder, tmp_path):
    import treepiece

    result = treepiece.train(folder, tmp_path / "model", recipe=folder / "recipe.yaml")
    assert (result.is_complete, result.rows, result.validation_rows) == (True, 108, 12)
    commanded = (folder / "model" / "weights.safetensors").read_bytes()
    assert (tmp_path / "model" / "weights.safetensors").read_bytes() == commanded
    scores = treepiece.evaluate(tmp_path / "model", folder)
    assert json.loads(json.dumps(scores.to_json())) | {"unparsable": 0} == evaluate("--model", folder / "model", folder)
    pairs = [("fly me to rome", "[IN:FLY fly me to [SL:CITY rome ] ]")]
    assert treepiece.evaluate(tmp_path / "model", pairs).em == 0
    with pytest.raises(TreepieceError, match="row 2: expected an utterance and its parse, got 'x'"):
        treepiece.evaluate(tmp_path / "model", [*pairs, "x"])


def test_help_loads_no_torch():
    code = "import sys\nfrom treepiece.cli.main import app\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
