"""The figures of the tokenizer on TOPv2."""

from itertools import pairwise

import pytest

from treepiece import TreePieceTokenizer
from treepiece.data.reader import read_rows
from treepiece.tokenizer.coverage import evaluate_tokenizer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def skeletons(topv2):
    return {split: [row.skeleton for row in read_rows(topv2, split=split)] for split in ("train", "eval")}


@pytest.fixture(scope="module")
def tokenizer(skeletons):
    return TreePieceTokenizer.train(skeletons["train"])


def test_training(tokenizer):
    report = tokenizer.report
    assert (report.n_labels, report.n_merges, report.base_units) == (162, 600, 762)
    assert len(report.em_objectives) < 30
    assert all(after >= before - 1e-6 for before, after in pairwise(report.em_objectives))
    assert len(tokenizer.units) <= 2_200


@pytest.mark.parametrize("split", ["train", "eval"])
def test_encoding(tokenizer, skeletons, split):
    scores = evaluate_tokenizer(tokenizer, skeletons[split])
    assert scores.trees == len(skeletons[split])
    assert scores.roundtrip_failures == 0
    assert scores.unencodable_seen_labels == 0
    assert scores.units_per_tree <= 1.23
