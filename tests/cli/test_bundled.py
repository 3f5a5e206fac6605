"""`bundled` as the model of every command that takes one, and `./bundled` for a folder that is called so."""

import json
import shutil

import pytest
from tiny import SETTINGS, rows_of
from typer.testing import CliRunner

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import yaml

from treepiece import Parser
from treepiece.bundle import read_bundle
from treepiece.cli.main import app
from treepiece.data.examples import make_examples
from treepiece.data.toy import toy_rows
from treepiece.errors import BundleError, TreepieceError
from treepiece.export.exporter import ExportOptions, Weights, export_model
from treepiece.models.trained import load_model
from treepiece.runtime.sessions import Precision

TEXT = "call mom"

pytestmark = pytest.mark.slow  # it exports a model, and trains one


@pytest.fixture(scope="module")
def made(tiny_bundle, tmp_path_factory):
    """A folder with what is shipped: graphs in int8, and weights in half precision."""
    folder, model = tmp_path_factory.mktemp("shipped"), tiny_bundle.parent / "model"
    examples, _ = make_examples(rows_of(20, seed=1), load_model(model).subwords)
    graphs = ExportOptions((Precision.INT8,), least_agreement=0.0)
    export_model(model, folder / "graphs", examples, data="toy rows", options=graphs)
    weights = ExportOptions((), Weights.HALF, least_agreement=0.0)
    export_model(model, folder / "weights", examples, data="toy rows", options=weights)
    return folder


@pytest.fixture
def shipped(made, monkeypatch, tmp_path):
    monkeypatch.setattr("treepiece.bundle.GRAPHS_FOLDER", made / "graphs")
    monkeypatch.setattr("treepiece.bundle.WEIGHTS_FOLDER", made / "weights")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.tsv").write_text("".join(f"{text}\t{parse}\n" for _, text, parse in toy_rows(30, seed=3)))
    return made


def run(*args):
    result = CliRunner().invoke(app, [str(arg) for arg in args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_parsing(shipped):
    wanted = f"{Parser.load(shipped / 'graphs')(TEXT).tree}\n"
    assert run("parse", "--top", TEXT) == run("parse", "--model", "bundled", "--top", TEXT) == wanted
    assert Parser.bundled()(TEXT) == Parser.load("bundled")(TEXT) == Parser("bundled")(TEXT)


def test_a_folder_that_is_called_so(shipped, tiny_bundle, tmp_path):
    shutil.copytree(tiny_bundle, tmp_path / "bundled")
    assert Parser.load("bundled").bundle.folder == shipped / "graphs"
    assert read_bundle(Parser.load("./bundled").bundle.folder).files == read_bundle(tiny_bundle).files
    run("parse", "--model", "./bundled", "--float", TEXT)
    with pytest.raises(BundleError, match="no graphs in float"):
        run("parse", "--model", "bundled", "--float", TEXT)
    run("evaluate", "--model", "./bundled", "rows.tsv", "--precision", "float")
    with pytest.raises(TreepieceError, match="a model without weights.safetensors"):
        run("train", "rows.tsv", "--output", "model", "--init", "./bundled")


def test_evaluating_and_comparing_need_graphs_in_int8_only(shipped):
    by_name = json.loads(run("evaluate", "--model", "bundled", "rows.tsv", "--json"))
    assert by_name == json.loads(run("evaluate", "--model", shipped / "graphs", "rows.tsv", "--json"))
    compared = json.loads(run("evaluate", "--model", "bundled", "rows.tsv", "--compare", "bundled", "--json"))[
        "compare"
    ]
    assert (compared["model"], compared["difference"]) == ("bundled", 0)


def test_training_goes_on_from_the_weights(shipped, tmp_path):
    settings = {
        **SETTINGS,
        "epochs": 1,
        "optimizer": {"learning_rates": dict.fromkeys(("encoder", "units", "spans"), 0)},
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(settings))
    run("train", "rows.tsv", "--output", "model", "--init", "bundled", "--recipe", "recipe.yaml")
    before, after = load_model("bundled").model.encoder, load_model("model").model.encoder
    assert all((a == b).all() for a, b in zip(before.parameters(), after.parameters(), strict=True)), "nothing is new"


def test_training_without_the_weights_says_so_before_any_work(shipped, monkeypatch, tmp_path):
    monkeypatch.setattr("treepiece.bundle.WEIGHTS_FOLDER", tmp_path / "nowhere")
    with pytest.raises(BundleError, match="a wheel holds graphs only .*clone the repository"):
        run("train", "rows.tsv", "--output", "model", "--init", "bundled")
    assert not (tmp_path / "model").exists()


def test_exporting_starts_from_the_weights(shipped):
    run("export", "--model", "bundled", "--output", "again", "--weights", "half", "--no-float", "--no-int8")
    weights = "weights.safetensors"
    assert read_bundle("again").files[weights] == read_bundle(shipped / "weights").files[weights]


@pytest.mark.parametrize("command", ["parse", "evaluate", "train", "export"])
def test_help_teaches_the_word(command):
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "300", "TERM": "dumb"}).stdout
    assert "bundled, the model that comes with treepiece (write ./bundled for a folder of that name)" in shown
