"""Semantic parsing with tree tokenization.

>>> from treepiece import Frame
>>> Frame.from_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]").leaves[0].text
'today'
"""

from treepiece.errors import TreepieceError
from treepiece.tokenizer.config import TokenizerConfig
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.brackets import format_brackets, parse_brackets
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node

__all__ = [
    "Frame",
    "Node",
    "TokenizerConfig",
    "TreePieceTokenizer",
    "TreepieceError",
    "format_brackets",
    "parse_brackets",
]
