import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from tiny import SETTINGS, rows_of

from treepiece.training.configs import read_config
from treepiece.training.examples import make_examples
from treepiece.training.objectives import make_objective
from treepiece.training.observer import Observer
from treepiece.training.preparation import new_model
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


@pytest.fixture
def made(toy, recipe):
    """Return a model that was never trained, toy examples, and what it would learn from them."""

    def make(kind, **changes):
        settings = recipe(model=kind, label_smoothing=0.0, **changes)
        trained = new_model(toy(80), settings, Observer(), None)
        trained.model.eval()
        examples = make_examples(toy(80), trained.subwords)[0]
        return trained.model, examples, make_objective(trained, examples, settings)

    return make
