import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from tiny import SETTINGS, rows_of

from treepiece.training.configs import read_config
from treepiece.training.recipe import Recipe


@pytest.fixture(scope="session")
def toy():
    return rows_of


@pytest.fixture
def recipe(tiny_encoder):
    """Return a recipe for a very small model, with some settings changed."""

    def make(**changes):
        return read_config(Recipe, {"encoder": str(tiny_encoder), **SETTINGS, **changes})

    return make
