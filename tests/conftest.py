import os
from pathlib import Path

# Before anything loads PyTorch: several test processes, each with a thread a core, mostly wait for one another.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings
from tiny import SETTINGS, export_tiny, once, rows_of, tiny_model, write_tiny_encoder

from treepiece.progress import NoProgress

# The same examples on every run, so that a failure in CI is a failure here; HYPOTHESIS_PROFILE=explore finds new ones.
# A test that names health checks of its own replaces these: it has to name `too_slow` too, for machines that stall.
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

MARKS = {"browser": pytest.mark.browser, "cluster": pytest.mark.ray, "topv2": pytest.mark.slow}
"""A test has the mark of every fixture here that it asks for, itself or through another fixture."""


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, mark in MARKS.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)


@pytest.fixture(scope="session")
def topv2() -> Path:
    folder = Path(os.environ.get("TREEPIECE_TOPV2", Path(__file__).parents[2] / "shared" / "topv2"))
    if not folder.is_dir():
        pytest.skip(f"TOPv2 is not at {folder}: set TREEPIECE_TOPV2 to its folder")
    return folder


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory) -> Path:
    """A folder with a very small encoder in the format of Hugging Face."""
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")
    folder = tmp_path_factory.mktemp("encoder")
    write_tiny_encoder(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_bundle(request, tmp_path_factory) -> Path:
    """An exported bundle of a very small TreePiece model with random weights; tests must not change it.

    Without PyTorch it cannot be made; TREEPIECE_TINY_BUNDLE names one that another environment has made.
    """
    if "TREEPIECE_TINY_BUNDLE" in os.environ:
        return Path(os.environ["TREEPIECE_TINY_BUNDLE"])
    tiny_encoder = request.getfixturevalue("tiny_encoder")
    return once("tiny_bundle", tmp_path_factory, lambda folder: export_tiny(folder, tiny_model(tiny_encoder)))


@pytest.fixture(scope="session")
def reranking_bundle(tmp_path_factory, tiny_encoder) -> Path:
    """The same with a reranker, and with fitted settings of decoding."""
    from treepiece.decoding.types import DecodingConfig, Temperatures

    def make(folder: Path) -> Path:
        trained = tiny_model(tiny_encoder, reranker=True)
        trained.decoding = DecodingConfig(reranker_weight=0.4, temperatures=Temperatures(1.3, 2.1))
        return export_tiny(folder, trained)

    return once("reranking_bundle", tmp_path_factory, make)


@pytest.fixture(scope="session")
def toy():
    return rows_of


@pytest.fixture
def recipe(tiny_encoder):
    """Return a recipe for a very small model, with some settings changed."""

    def make(**changes):
        from treepiece.training.recipe import make_recipe

        return make_recipe({"encoder": str(tiny_encoder), **SETTINGS, **changes})

    return make


@pytest.fixture
def made(toy, recipe):
    """Return a model that was never trained, toy examples, and the losses of some of them by their places."""

    def make(kind, **changes):
        from treepiece.data.examples import make_examples
        from treepiece.training.preparation import new_model

        settings = recipe(kind=kind, label_smoothing=0.0, **changes)
        trained = new_model(toy(80), settings, NoProgress(), None)
        trained.model.eval()
        examples = make_examples(toy(80), trained.subwords)[0]

        def loss(places):
            return trained.model.loss(trained.model.collate([examples[place] for place in places]), settings.loss)

        return trained.model, examples, loss

    return make
