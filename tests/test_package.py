"""The public names of the package."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

import treepiece

NEED_TORCH = {"train", "evaluate"}


def test_every_public_name_is_listed_and_there():
    documented = {"Parser", "Result", "Candidate", "Frame", "Node", "TreePieceTokenizer"} | NEED_TORCH
    assert documented <= set(treepiece.__all__) <= set(dir(treepiece))
    for name in set(treepiece.__all__) - (set() if find_spec("torch") else NEED_TORCH):
        assert getattr(treepiece, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Parsr'"):
        _ = treepiece.Parsr


def test_importing_loads_nothing_but_the_package():
    code = "import sys, treepiece; dir(treepiece); print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "transformers", "lightning", "onnxruntime", "tokenizers", "numpy", "pydantic", "fastapi", "spacy"}
    assert not (heavy | {"rich", "typer"}) & set(ran.stdout.split())


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: pip install 'treepiece[train]'")
def test_a_star_import_gets_all_names():
    names = {}
    exec("from treepiece import *", names)
    assert set(treepiece.__all__) <= set(names)
