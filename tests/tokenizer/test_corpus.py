from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from strategies import corpora, tokenizer_configs

from treepiece import Node, TreePieceTokenizer, parse_brackets
from treepiece.errors import OptionError, TreeParseError
from treepiece.tokenizer.folding import CONTINUATION


@given(corpora(), tokenizer_configs())
def test_counts_and_repetition_are_the_same(corpus, config):
    repeated = [tree for tree, count in zip(corpus.trees, corpus.counts, strict=True) for _ in range(count)]
    first = TreePieceTokenizer.train(zip(corpus.trees, corpus.counts, strict=True), config)
    second = TreePieceTokenizer.train(repeated, config)
    assert first.units == second.units
    assert first.report == second.report


def test_counters_and_numpy_numbers_are_counts():
    tree = parse_brackets("[A [B ] ]", any_label=True)
    counted = TreePieceTokenizer.train(Counter({tree: 5, Node("A"): 1}))
    assert counted.units == TreePieceTokenizer.train([(tree, np.int64(5)), Node("A")]).units
    assert counted.units != TreePieceTokenizer.train([tree, Node("A")]).units
    assert counted.decode(np.array(counted.encode(tree))) == tree
    with pytest.raises(OptionError, match="from 1 to"):
        TreePieceTokenizer.train([(tree, 10**18)])


def test_words_and_empty_corpora_are_refused(tokenizer):
    with pytest.raises(TreeParseError, match=r"found 'hello': pass Frame.from_tree\(tree\).skeleton"):
        tokenizer.encode(Node("A", ["hello"]))
    with pytest.raises(TreeParseError, match="found 'hello'"):
        TreePieceTokenizer.train([Node("A", ["hello"])])
    with pytest.raises(TreeParseError, match="is reserved: rename it"):
        TreePieceTokenizer.train([Node(CONTINUATION)])
    with pytest.raises(OptionError, match="there are no trees to train on"):
        TreePieceTokenizer.train([])
    with pytest.raises(OptionError, match="the count of a tree must be a whole number, from 1 to .*, got 0"):
        TreePieceTokenizer.train([(Node("A"), 0)])
