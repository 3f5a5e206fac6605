"""On the real data nothing is lost between words and subwords."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.data.examples import Example, make_examples, outcome_of
from treepiece.data.reader import read_rows
from treepiece.decoding.types import Hypothesis
from treepiece.models.encoder import load_encoder


def test_a_parser_that_points_at_the_right_subwords_is_right(topv2):
    _, subwords = load_encoder("minilm")
    examples, left_out = make_examples(list(read_rows(topv2, split="eval")), subwords)
    assert len(examples) == 17_160
    assert left_out == []
    assert all(outcome_of(example, gold(example)).is_exact for example in examples)


def gold(example: Example) -> Hypothesis:
    return Hypothesis.of_parts(example.frame.skeleton, example.spans, 0.0, (0.0,) * len(example.spans), passes=1)
