"""What a wheel holds: the code and the model, with all of its files and notices, and no weights."""

import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import treepiece

pytest.importorskip("setuptools", minversion="77", reason="setuptools 77 or newer is needed to build a wheel")

ROOT = Path(__file__).parents[1]
if not (ROOT / "src").is_dir():
    pytest.skip("this is not the repository: there is no src to build from", allow_module_level=True)
MODEL = [
    "README.md",
    "config.json",
    "manifest.json",
    "onnx/int8/parse.onnx",
    "runtime.json",
    "subwords.json",
    "tokenizer/tokenizer.json",
    "tokenizer/units.txt",
    "training.json",
]
BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names of what is in a wheel that was built from a copy with a made-up model, and its metadata."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("bundled", "*.egg-info", "__pycache__"))
    for file in MODEL:
        path = folder / "src" / "treepiece" / "bundled" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)
    (folder / "checkpoints" / "topv2-minilm").mkdir(parents=True)
    (folder / "checkpoints" / "topv2-minilm" / "weights.safetensors").write_text("weights")
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder / "dist")], cwd=folder, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    (file,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(file) as contents:
        return {name: contents.read(name) if name.endswith("/METADATA") else b"" for name in contents.namelist()}


def test_the_model_is_in_the_wheel(wheel):
    found = sorted(name.removeprefix("treepiece/bundled/") for name in wheel if name.startswith("treepiece/bundled/"))
    assert found == MODEL


def test_the_weights_are_not(wheel):
    assert not [name for name in wheel if "checkpoints" in name or name.endswith(".safetensors")]


def test_all_of_the_source_is_there_and_nothing_else(wheel):
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "treepiece").rglob("*")
        if path.is_file() and not {"__pycache__", "bundled"} & set(path.parts)
    }
    assert {name for name in wheel if ".dist-info/" not in name and "/bundled/" not in name} == source


def test_the_notices_are_there(wheel):
    assert {Path(name).name for name in wheel if ".dist-info/licenses/" in name} == {"LICENSE", "NOTICE"}


def test_the_metadata_is_whole(wheel):
    (text,) = (content.decode() for name, content in wheel.items() if name.endswith("/METADATA"))
    metadata = Parser().parsestr(text)
    assert metadata["Version"] == treepiece.__version__
    assert metadata["Author"] == "The treepiece developers"
    links = dict(link.split(", ") for link in metadata.get_all("Project-URL"))
    assert links.keys() == {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
