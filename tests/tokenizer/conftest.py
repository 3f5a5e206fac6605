import pytest

from treepiece import Node, TreePieceTokenizer, parse_brackets


@pytest.fixture(scope="session")
def tokenizer():
    wide = parse_brackets("[A [B ] [B ] [C ] ]", any_label=True)
    return TreePieceTokenizer.train([(wide, 5), Node("A"), Node("B", [Node("C")])])
