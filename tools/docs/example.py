"""The two examples that the figures share: a corpus small enough to count by hand, and a request with a nested one."""

from __future__ import annotations

from functools import cache

from treepiece import Frame, TokenizerConfig, TreePieceTokenizer, parse_brackets
from treepiece.data.toy import toy_frames
from treepiece.tokenizer.corpus import Corpus
from treepiece.trees.node import Node

N_MERGES = 4
REQUEST = "remind me to text grace tonight"
_PARSE = (
    "[IN:CREATE_REMINDER remind [SL:PERSON_REMINDED me ] to [SL:TODO [IN:SEND_MESSAGE text [SL:RECIPIENT grace ] ] ] "
    "[SL:DATE_TIME tonight ] ]"
)


def small_trees() -> list[tuple[Node, int]]:
    """Return the trees that are counted by hand, and how often each occurs."""
    texts = {"[R [T ] [D ] ]": 3, "[R [T ] [P [C ] ] ]": 2}
    return [(parse_brackets(text, any_label=True), count) for text, count in texts.items()]


def small_corpus() -> Corpus:
    """Return those trees as the tokenizer learns from them."""
    return Corpus.collect(small_trees())


def toy_skeletons(n_rows: int = 5000) -> list[Node]:
    """Return the skeletons of the toy grammar."""
    return [frame.skeleton for frame in toy_frames(n_rows)]


@cache
def toy_tokenizer() -> TreePieceTokenizer:
    """Return the tokenizer of the README."""
    return TreePieceTokenizer.train(toy_skeletons(), TokenizerConfig(merges=60))


def request() -> Frame:
    """Return the request with its parse."""
    return Frame.from_brackets(_PARSE, REQUEST)
