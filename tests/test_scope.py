"""The classifier of scope: its files, and its part in results."""

import json
import math
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from treepiece import Parser
from treepiece.bundle import SCOPE, read_bundle, write_bundle
from treepiece.data.out_of_scope import Request, bundled_requests, check_scope, read_requests
from treepiece.errors import BundleError, DataError
from treepiece.runtime.splitting import cuts
from treepiece.scope import Scope, ScopeClassifier, pool

WIDTH = 24
TEXTS = ["remind me to call mom tonight", "wake me up at 8 am", "will it rain in oslo on sunday"]
finite = st.floats(-1e3, 1e3, width=32)


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(0)
    return ScopeClassifier(rng.normal(size=(2, 3 * WIDTH)), rng.normal(size=2))


@pytest.fixture(scope="module")
def bundle(tiny_bundle, classifier, tmp_path_factory):
    """The tiny bundle with a classifier of random weights."""
    copy = shutil.copytree(tiny_bundle, tmp_path_factory.mktemp("scope") / "bundle")
    files = read_bundle(copy)
    write_bundle(copy, files.kind, {name: files.read(name) for name in files.files} | {SCOPE: classifier.to_bytes()})
    return copy


@given(states=arrays(np.float32, st.tuples(st.integers(1, 6), st.just(WIDTH)), elements=finite))
def test_scopes_are_probabilities(classifier, states):
    scope = classifier(states)
    assert 0 <= scope.in_scope <= 1
    assert 0 <= scope.several <= 1
    assert 0 <= scope.one_request <= scope.in_scope
    assert pool(states).tolist() == [*states[0], *states.mean(axis=0), *states.max(axis=0)]


def test_broken_states_are_out_of_scope(classifier):
    assert classifier(np.full((3, WIDTH), math.nan, np.float32)) == Scope(0.0, 0.0)


def test_a_classifier_is_saved_and_loaded(classifier):
    loaded = ScopeClassifier.from_bytes(classifier.to_bytes(), WIDTH)
    assert loaded.weights == pytest.approx(classifier.weights, rel=1e-5)
    assert loaded.biases == pytest.approx(classifier.biases, rel=1e-5)
    assert loaded.to_bytes() == classifier.to_bytes()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[", "as a JSON object"),
        (b"{}", "as a JSON object"),
        (json.dumps({name: {"bias": 0, "weights": [1.0]} for name in Scope._fields}).encode(), "72 finite weights"),
        (
            json.dumps({name: {"bias": 0, "weights": [math.inf] * 72} for name in Scope._fields}).encode(),
            "72 finite weights",
        ),
    ],
)
def test_files_that_are_no_classifier(data, message):
    with pytest.raises(BundleError, match=message):
        ScopeClassifier.from_bytes(data, WIDTH)


def test_the_scope_is_part_of_every_confidence(bundle, tiny_bundle):
    parser, plain = Parser(bundle), Parser(tiny_bundle)
    for text in TEXTS:
        result, other = parser(text, nbest=3), plain(text, nbest=3)
        share = result.scope.one_request
        assert other.scope is other.in_scope is other.several is None
        assert (result.in_scope, result.several) == (result.scope.in_scope, result.scope.several)
        assert [one.confidence for one in result.candidates] == [share * one.confidence for one in other.candidates]
        assert result.best.leaf_confidences == tuple(share * one for one in other.best.leaf_confidences)
        assert result.best.frame == other.best.frame
        assert result.to_dict()["in_scope"] == result.in_scope
    assert [one.scope for one in parser.batch(TEXTS)] == [parser(text).scope for text in TEXTS]


def test_a_damaged_classifier(tiny_bundle, tmp_path):
    copy = shutil.copytree(tiny_bundle, tmp_path / "bundle")
    files = read_bundle(copy)
    write_bundle(copy, files.kind, {name: files.read(name) for name in files.files} | {SCOPE: b"{}"})
    with pytest.raises(BundleError, match=r"scope\.json: expected the weights and the bias"):
        Parser(copy)


def test_requests_are_read(tmp_path):
    file = tmp_path / "other.tsv"
    file.write_text("book a flight\ttravel\n\n  \nhello\n", encoding="utf-8")
    assert read_requests(file) == [Request("book a flight", "travel"), Request("hello")]


def test_files_without_requests(tmp_path):
    empty, latin = tmp_path / "empty.txt", tmp_path / "latin.txt"
    empty.write_text("\n \n")
    latin.write_bytes(b"fine\ncaf\xe9\n")
    with pytest.raises(DataError, match="there are no requests in it"):
        read_requests(empty)
    with pytest.raises(DataError, match=r"latin\.txt, line 2: byte 4 is not UTF-8"):
        read_requests(latin)
    with pytest.raises(DataError, match="cannot be read"):
        read_requests(tmp_path / "missing.txt")


def test_requests_that_are_training_rows_are_named():
    requests = [Request(f"request {number}") for number in range(5)]
    check_scope(requests, ["another"], "file")
    with pytest.raises(DataError, match=r"'request 0', 'request 1', 'request 2', \.\.\. \(5 in all\)"):
        check_scope(requests, [f"Request  {number}" for number in range(9)], "file")


def test_the_requests_that_come_with_treepiece():
    groups = {one.group for one in bundled_requests()}
    assert len(bundled_requests()) == 11_200
    assert {"oos", "greeting", "translate"} <= groups


@pytest.fixture(scope="module")
def splitting_bundle(tiny_bundle, tmp_path_factory):
    """The tiny bundle with a classifier that takes every text for several requests."""
    copy = shutil.copytree(tiny_bundle, tmp_path_factory.mktemp("several") / "bundle")
    files = read_bundle(copy)
    always = ScopeClassifier(np.zeros((2, 3 * WIDTH)), np.array([4.0, 4.0])).to_bytes()
    write_bundle(copy, files.kind, {name: files.read(name) for name in files.files} | {SCOPE: always})
    return copy


@pytest.mark.parametrize("join", [" and ", ", ", " then ", ", and then ", ". ", "; also "])
def test_two_requests_are_parsed_apart(splitting_bundle, join):
    parser = Parser(splitting_bundle)
    text = TEXTS[0] + join + TEXTS[1]
    result = parser(text)
    first, second = result.requests
    assert (first.result.text, second.result.text) == (TEXTS[0], TEXTS[1])
    for part in result.requests:
        assert text[part.start : part.end] == part.result.text
        alone = parser(part.result.text)
        assert (part.result.best, part.result.requests) == (alone.best, ())
    refused = result.with_min_confidence(1.0)
    assert [refused.understood, *(part.result.understood for part in refused.requests)] == [False] * 3
    assert refused == parser(text, min_confidence=1.0)
    assert parser.batch([text, TEXTS[2]]) == [result, parser(TEXTS[2])]
    assert [one["tree"] for one in result.to_dict()["requests"]] == [part.result.tree for part in result.requests]


@pytest.mark.parametrize("text", ["wake me up", "and", " , ", "wake me up,", "and then wake me up"])
def test_a_text_that_cannot_be_cut(splitting_bundle, text):
    assert Parser(splitting_bundle)(text).requests == ()


def test_the_most_confident_cut_is_kept(splitting_bundle):
    parser = Parser(splitting_bundle)
    text = "remind me to call mom and dad, and wake me up at 8 am and 9 am"
    found = parser(text).requests
    least = [
        min(parser(text[slice(*part)]).confidence for part in cut)
        for cut in cuts(text)
        if all(text[slice(*part)].strip() for part in cut)
    ]
    assert min(part.result.confidence for part in found) == max(least)


@given(
    st.lists(st.sampled_from(["a", "and", " ", ",", ".", ";", "then", "b c", "also", "1.5"]), max_size=12).map("".join)
)
def test_cuts_are_inside_of_the_text(text):
    for first, second in cuts(text):
        assert 0 == first.start < first.end < second.start < second.end == len(text)
        assert text[slice(*first)].strip()
        assert text[slice(*second)].strip()


def test_a_long_run_of_blanks_is_cut_at_once():
    """In time that grows with the length, not with its square: a text may have 100,000 characters."""
    assert [text[slice(*part)] for text in ["wake me" + " " * 90_000 + "and play"] for part in next(cuts(text))] == [
        "wake me",
        "play",
    ]
