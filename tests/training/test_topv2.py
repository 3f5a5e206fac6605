"""On the real data nothing is lost between words and subwords."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.data.reader import read_rows
from treepiece.decoding.parse import Parse
from treepiece.models.encoder import load_encoder
from treepiece.training.examples import make_examples
from treepiece.training.prediction import _outcome


def test_a_parser_that_points_at_the_right_subwords_is_right(topv2):
    _, subwords = load_encoder("minilm")
    examples, left_out = make_examples(list(read_rows(topv2, split="eval")), subwords)
    assert len(examples) == 17_160
    assert left_out == []
    outcomes = (_outcome(example, Parse(example.frame.skeleton, example.spans, 0.0, passes=1)) for example in examples)
    assert all(outcome.is_exact for outcome in outcomes)
