"""What pytest does where an extra is not installed: the examples of modules that need it are skipped."""

from importlib.util import find_spec

import pytest

EXTRAS = ("fastapi", "pyarrow", "ray", "spacy", "torch", "yaml")


def pytest_configure(config: pytest.Config) -> None:
    """Skip such modules, with the reason, instead of failing; with all extras a failed import is an error."""
    if not all(map(find_spec, EXTRAS)):
        config.option.doctest_ignore_import_errors = True
