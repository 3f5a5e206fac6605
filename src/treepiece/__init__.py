"""Semantic parsing with tree tokenization.

>>> from treepiece import Frame
>>> Frame.from_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]").leaves[0].text
'today'
"""

from typing import TYPE_CHECKING

from treepiece.errors import TreepieceError
from treepiece.tokenizer.config import TokenizerConfig
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.brackets import format_brackets, parse_brackets
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node

if TYPE_CHECKING:
    from treepiece.runtime.parser import Parser

__all__ = [
    "Frame",
    "Node",
    "Parser",
    "TokenizerConfig",
    "TreePieceTokenizer",
    "TreepieceError",
    "format_brackets",
    "parse_brackets",
]


def __getattr__(name: str) -> object:
    """Return `Parser`, which is loaded when it is asked for: ONNX Runtime is large, and trees do not need it."""
    if name == "Parser":
        from treepiece.runtime.parser import Parser

        return Parser
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
