import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'treepiece[serve]'")
pytest.importorskip("httpx", reason="httpx is not installed: pip install 'treepiece[dev]'")

from treepiece.runtime.parser import Parser
from treepiece.serving.app import create_app
from treepiece.serving.settings import Settings


@pytest.fixture(scope="session")
def parser(tiny_bundle):
    """A parser that nothing is changed in."""
    return Parser.load(tiny_bundle, threads=2)


@pytest.fixture
def make_app(parser):
    """Make an application with settings of its own."""
    return lambda **settings: create_app(parser, Settings(**settings))
