"""`treepiece.check` with a trained model."""

import pytest
from tiny import rows_of

import treepiece
from treepiece.checking.checker import CheckConfig
from treepiece.checking.findings import FindingKind
from treepiece.data.rows import Row
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame, leaf_labels

pytestmark = pytest.mark.slow  # it exports a model

ANY = CheckConfig(min_confidence=0.0)
TEXTS = [row.frame.utterance for row in rows_of(20)]


def parsed_by_bundle(bundle):
    parser = treepiece.Parser(bundle)
    return bundle, [parser(text).frame for text in TEXTS]


def parsed_by_weights(bundle):
    from treepiece.models.trained import load_model

    return bundle.parent / "model", load_model(bundle.parent / "model").parse(TEXTS)


@pytest.mark.parametrize("parse", [parsed_by_bundle, parsed_by_weights])
def test_only_a_row_that_the_model_parses_otherwise_is_suspicious(tiny_bundle, parse):
    model, frames = parse(tiny_bundle)
    rows = [Row(frame.skeleton, frame) for frame in frames]
    assert treepiece.check(rows, model=model, config=ANY).counts[FindingKind.LIKELY_ERROR] == 0
    annotated = frames[3]
    wrong = next(row.skeleton for row in rows_of(20) if row.skeleton != annotated.skeleton)
    spans = tuple(Span(0, 0) for _ in leaf_labels(wrong))
    rows[3] = Row(wrong, Frame(annotated.words, wrong, spans, annotated.utterance))
    report = treepiece.check(rows, model=model, config=ANY)
    (finding,) = report.examples[FindingKind.LIKELY_ERROR]
    assert finding.where.line == 4
    assert [quote.frame.skeleton for quote in finding.parses] == [wrong, annotated.skeleton]
    assert report.notes == ()


def test_labels_that_the_model_does_not_know_are_not_compared(tiny_bundle):
    report = treepiece.check([("hello", "[IN:GREET hello ]")], model=tiny_bundle, config=ANY)
    assert report.counts[FindingKind.LIKELY_ERROR] == 0
    assert "not compared with the model" in report.notes[0]
