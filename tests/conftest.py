import os
from pathlib import Path

# Before anything loads PyTorch: several test processes, each with a thread a core, mostly wait for one another.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings
from tiny import export_tiny, once, tiny_model, write_tiny_encoder

# The same examples on every run, so that a failure in CI is a failure here; HYPOTHESIS_PROFILE=explore finds new ones.
# A test that names health checks of its own replaces these: it has to name `too_slow` too, for machines that stall.
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def topv2() -> Path:
    folder = Path(os.environ.get("TREEPIECE_TOPV2", Path(__file__).parents[2] / "shared" / "topv2"))
    if not folder.is_dir():
        pytest.skip(f"TOPv2 is not at {folder}: set TREEPIECE_TOPV2 to its folder")
    return folder


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory) -> Path:
    """A folder with a very small encoder in the format of Hugging Face."""
    folder = tmp_path_factory.mktemp("encoder")
    write_tiny_encoder(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_bundle(tmp_path_factory, tiny_encoder) -> Path:
    """An exported bundle of a very small TreePiece model with random weights; tests must not change it."""
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")
    return once("tiny_bundle", tmp_path_factory, lambda folder: export_tiny(folder, tiny_model(tiny_encoder)))
