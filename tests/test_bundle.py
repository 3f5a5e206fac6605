"""`bundled`: one word for the model that comes with treepiece, wherever a model is asked for."""

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treepiece import bundle as shipped
from treepiece.bundle import read_bundle
from treepiece.errors import BundleError
from treepiece.runtime.sessions import Precision, precisions_in

ROOT = Path(__file__).parents[1]
MOST_MEGABYTES = 45


@given(name=st.text(min_size=1).filter(lambda text: text != "bundled"))
def test_every_other_text_is_the_folder_that_it_names(name):
    assert shipped.find_graphs(name) == shipped.find_weights(name) == Path(name)


@pytest.mark.parametrize("own", ["./bundled", "bundled/", Path("bundled"), Path("./bundled")])
def test_a_folder_of_the_users_with_that_name(own):
    assert shipped.find_graphs(own) == shipped.find_weights(own) == Path("bundled")


def test_the_word_is_two_folders(monkeypatch, tmp_path):
    for name in ("GRAPHS_FOLDER", "WEIGHTS_FOLDER"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").touch()
        monkeypatch.setattr(shipped, name, tmp_path / name)
    assert shipped.find_graphs("bundled") == tmp_path / "GRAPHS_FOLDER"
    assert shipped.find_weights("bundled") == tmp_path / "WEIGHTS_FOLDER"


@pytest.mark.parametrize(
    ("find", "name", "remedy"),
    [
        (shipped.find_graphs, "GRAPHS_FOLDER", "export it with `treepiece export`, and give its folder"),
        (
            shipped.find_weights,
            "WEIGHTS_FOLDER",
            "a wheel holds graphs only .* clone the repository, .* or give a folder",
        ),
    ],
)
def test_what_is_not_there_says_where_it_was_looked_for(monkeypatch, tmp_path, find, name, remedy):
    monkeypatch.setattr(shipped, name, tmp_path / "nowhere")
    monkeypatch.chdir(tmp_path)
    place = re.escape(f"(looked for {tmp_path / 'nowhere' / 'manifest.json'})")
    with pytest.raises(BundleError, match=f"^bundled: this installation has no .*{place}") as caught:
        find("bundled")
    assert re.search(remedy, str(caught.value))
    assert "./bundled" not in str(caught.value)
    (tmp_path / "bundled").mkdir()
    with pytest.raises(BundleError, match="the folder bundled that is here is ./bundled$"):
        find("bundled")


@pytest.mark.skipif(not (ROOT / "src").is_dir(), reason="this is not the repository: there is no src")
def test_the_weights_are_looked_for_in_the_repository():
    assert shipped.WEIGHTS_FOLDER == ROOT / "checkpoints" / "topv2-minilm"
    assert shipped.GRAPHS_FOLDER == ROOT / "src" / "treepiece" / "bundled"


def all_files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def graphs():
    if not (shipped.GRAPHS_FOLDER / "manifest.json").is_file():
        pytest.skip("there is no model in src/treepiece/bundled: make it with `make model`")
    return read_bundle(shipped.GRAPHS_FOLDER)


@pytest.fixture
def weights():
    if not (shipped.WEIGHTS_FOLDER / "manifest.json").is_file():
        pytest.skip("there is no model in checkpoints/topv2-minilm: make it with `make model`")
    return read_bundle(shipped.WEIGHTS_FOLDER)


def test_the_model_that_is_shipped_is_small_and_whole(graphs):
    assert precisions_in(graphs) == [Precision.INT8]
    assert "weights.safetensors" not in graphs.files
    assert all_files(graphs.folder) == {*graphs.files, "manifest.json"}, "a file that was left over would be shipped"
    assert sum(os.path.getsize(graphs.folder / name) for name in graphs.files) <= MOST_MEGABYTES * 1e6


def test_the_weights_that_are_shipped_are_half_ones_of_the_same_model(weights, graphs):
    safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed: pip install '.[train]'")
    assert precisions_in(weights) == []
    assert all_files(weights.folder) == {*weights.files, "manifest.json"}
    with safetensors.safe_open(weights.folder / "weights.safetensors", "np") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} <= {"F16", "I64", "BOOL"}  # noqa: SIM118
    for name in ("config.json", "decoding.json", "training.json", "subwords.json"):
        assert weights.files[name] == graphs.files[name]


@pytest.mark.parametrize("which", ["graphs", "weights"])
def test_the_card_of_the_model_that_is_shipped(which, request):
    bundle = request.getfixturevalue(which)
    card = bundle.read("README.md").decode()
    for words in ("CC BY-SA 4.0", "Xilun Chen", "trained on TOPv2", "all-MiniLM-L6-v2", "Apache-2.0", "topv2 eval"):
        assert words in card
    assert "This is a development set" in card
    assert "86.18 % EM and 88.45 % EM-S on TOPv2 test" in card
    metadata = json.loads(bundle.read("runtime.json"))
    assert all(f"{one['rows']:,} | {one['em']:.2%}" in card for one in metadata["quality"].values())


def test_the_notice_names_what_the_model_is_made_from():
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for words in ("trained on TOPv2", "CC BY-SA 4.0", "Facebook", "all-MiniLM-L6-v2", "Apache License 2.0"):
        assert words in notice


def test_a_folder_without_a_manifest_is_no_model(monkeypatch, tmp_path):
    (tmp_path / "config.json").touch()
    monkeypatch.setattr(shipped, "GRAPHS_FOLDER", tmp_path)
    with pytest.raises(BundleError, match="looked for .*manifest.json"):
        shipped.find_graphs("bundled")
