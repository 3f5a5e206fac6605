"""PyTorch and ONNX Runtime score the same model: the same candidates, scores and confidences come out."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from tiny import export_tiny, rows_of, tiny_model

from treepiece import runtime
from treepiece.decoding.pipeline import confidence
from treepiece.decoding.types import DecodingConfig
from treepiece.models.trained import load_model
from treepiece.runtime.parser import Parser
from treepiece.runtime.sessions import as_ids

TEXTS = [row.frame.utterance for row in rows_of(24, seed=7)]

pytestmark = pytest.mark.slow  # it exports a model


@pytest.fixture(scope="module")
def plain_folder(tmp_path_factory, tiny_encoder):
    """TreePiece as in the paper, without extensions."""
    return export_tiny(tmp_path_factory.mktemp("plain"), tiny_model(tiny_encoder, plain=True))


@pytest.mark.parametrize("nbest", [1, 3, 7])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_both_scorers_give_the_same_hypotheses(reranking_bundle, nbest, threshold):
    check_scorers(reranking_bundle, nbest, threshold)


@pytest.mark.parametrize("nbest", [1, 7])
def test_both_scorers_give_the_same_hypotheses_without_extensions(plain_folder, nbest):
    check_scorers(plain_folder, nbest, 0.6)


def check_scorers(folder, nbest, threshold):
    trained = load_model(folder.parent / "model")
    config = replace(trained.decoding, rerank_threshold=threshold)
    parser = Parser(folder, precision="float", decoding=config)
    for utterance in trained.subwords.encode_batch(TEXTS):
        (wanted,) = trained.model.parse([utterance], config, nbest=nbest)
        (found,) = parser.model.parse(as_ids([utterance.ids]), nbest=nbest)
        assert len(found) == len(wanted) <= nbest
        for a, b in zip(wanted, found, strict=True):
            assert (a.skeleton, a.spans, a.unit_ids, a.passes) == (b.skeleton, b.spans, b.unit_ids, b.passes)
            assert (a.reranker_log_p is None) == (b.reranker_log_p is None)
            # The reranker says -300 of a frame that random weights do not like, in single precision.
            close = {"rel": 1e-4, "abs": 1e-3 - 1e-4 * (b.reranker_log_p or 0.0)}
            assert a.unit_log_p == pytest.approx(b.unit_log_p, rel=1e-4, abs=1e-3)
            assert a.log_p == pytest.approx(b.log_p, **close)
            assert (a.reranker_log_p or 0.0) == pytest.approx(b.reranker_log_p or 0.0, **close)
            assert a.leaf_log_p == pytest.approx(b.leaf_log_p, **close)
            assert a.span_log_p == pytest.approx(b.span_log_p, rel=1e-5, abs=1e-3)


def test_confidences_are_those_of_pytorch(reranking_bundle):
    trained = load_model(reranking_bundle.parent / "model")
    parser = Parser(reranking_bundle, precision="float")
    assert parser.decoding == trained.decoding
    for text, utterance in zip(TEXTS, trained.subwords.encode_batch(TEXTS), strict=True):
        ((wanted,),) = trained.model.parse([utterance], trained.decoding)
        result = parser(text)
        assert result.confidence == pytest.approx(confidence(wanted.log_p, 1.3), abs=1e-3)
        leaves = [confidence(log_p, 2.1) for log_p in wanted.leaf_log_p]
        assert result.best.leaf_confidences == pytest.approx(leaves, abs=1e-3)


def test_reranking_changes_answers(reranking_bundle):
    answers = []
    for threshold in (0.0, 1.0):
        parser = Parser(reranking_bundle, precision="float", decoding=DecodingConfig(rerank_threshold=threshold))
        answers.append([parser(text).best.frame.skeleton for text in TEXTS])
    assert answers[0] != answers[1]


@pytest.mark.parametrize("precision", ["float", "int8"])
def test_the_best_candidate_does_not_depend_on_how_many_are_asked_for(reranking_bundle, precision):
    parser = Parser(reranking_bundle, precision=precision)
    for text in TEXTS:
        alone = parser(text).best
        for nbest in (2, 10):
            best = parser(text, nbest=nbest).best
            assert best == replace(alone, score=best.score)


WAY = [
    "runtime/parser.py",
    "spelling.py",
    "text.py",
    "runtime/onnx_scorer.py",
    "decoding/pipeline.py",
    "decoding/search.py",
    "tokenizer/assembly.py",
    "decoding/linearization.py",
    "decoding/spans.py",
]
"""The files that a low-confidence parse crosses, in the order in which it enters them first."""
VALUES = {"decoding/types.py", "runtime/result.py", "runtime/sessions.py", "checks.py"}
"""Classes that the others pass on, and checks of single arguments; so are trees, units and labels."""


def test_a_low_confidence_parse_crosses_nine_files(reranking_bundle):
    always = DecodingConfig(rerank_threshold=1.0)
    scout, parser = (Parser(reranking_bundle, precision="float", decoding=always) for _ in range(2))
    utterances = scout.subwords.encode_batch(TEXTS)
    best = [scout.model.parse(as_ids([utterance.ids]))[0][0] for utterance in utterances]
    text = next(text for text, one in zip(TEXTS, best, strict=True) if one.reranker_log_p is not None)
    source = Path(runtime.__file__).parents[1]
    entered = {}

    def note(frame, event, _):
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(source):
            entered[file.relative_to(source).as_posix()] = None

    sys.setprofile(note)
    try:
        parser(text)
    finally:
        sys.setprofile(None)
    helpers = {name for name in entered if name.startswith(("trees/", "tokenizer/"))} - {"tokenizer/assembly.py"}
    assert [name for name in entered if name not in VALUES | helpers] == WAY
