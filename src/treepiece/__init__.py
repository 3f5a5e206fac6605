"""Semantic parsing with tree tokenization.

>>> from treepiece import Frame
>>> Frame.from_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]").leaves[0].text
'today'
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treepiece.api import check, evaluate, train
    from treepiece.errors import TreepieceError
    from treepiece.runtime.parser import Parser
    from treepiece.runtime.result import Candidate, Result, Slot
    from treepiece.tokenizer.learning import TokenizerConfig
    from treepiece.tokenizer.tokenizer import TreePieceTokenizer
    from treepiece.trees.brackets import format_brackets, parse_brackets
    from treepiece.trees.frame import Frame
    from treepiece.trees.node import Node

__version__ = "0.1.0"

__all__ = [
    "Candidate",
    "Frame",
    "Node",
    "Parser",
    "Result",
    "Slot",
    "TokenizerConfig",
    "TreePieceTokenizer",
    "TreepieceError",
    "__version__",
    "check",
    "evaluate",
    "format_brackets",
    "parse_brackets",
    "train",
]

_MODULES = {
    "Candidate": "runtime.result",
    "Frame": "trees.frame",
    "Node": "trees.node",
    "Parser": "runtime.parser",
    "Result": "runtime.result",
    "Slot": "runtime.result",
    "TokenizerConfig": "tokenizer.learning",
    "TreePieceTokenizer": "tokenizer.tokenizer",
    "TreepieceError": "errors",
    "check": "api",
    "evaluate": "api",
    "format_brackets": "trees.brackets",
    "parse_brackets": "trees.brackets",
    "train": "api",
}
"""The module of each public name. It is imported on first use: trees need no numpy, and only training needs PyTorch."""


def __getattr__(name: str) -> object:
    """Return a public name, importing its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return all public names, imported or not."""
    return sorted({*globals(), *__all__})
