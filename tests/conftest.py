import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tiny import write_tiny_encoder

# The same examples on every run, so that a failure in CI is a failure here; HYPOTHESIS_PROFILE=explore finds new ones.
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
