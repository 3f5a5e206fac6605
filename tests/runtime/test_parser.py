"""`Parser`: what it answers, and what it does not put up with."""

import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny import rows_of

from treepiece import Parser
from treepiece.bundle import read_bundle
from treepiece.decoding.pipeline import confidence, fill_leaves
from treepiece.decoding.scorer import SpanScores
from treepiece.decoding.types import Derivation
from treepiece.errors import BundleError, OptionError, TextError
from treepiece.evaluation.outcomes import is_valid_frame
from treepiece.trees.node import Node

TEXTS = [row.frame.utterance for row in rows_of(80, seed=5)]
STRANGE = [
    "remind me [IN:X ] to ] call [ mom",
    "\u0000\u0007call\u001b[31m mom\u0000",
    "🎉🎉 party 👩‍👩‍👧 tonight",
    "ذكرني أن call אמא מחר",
    "call \ud800 mom \udfff",
    "ｃａｌｌ ｍｏｍ",
    "e\u0301te\u0301 \u200b\u200d call",
    "call\u2028mom\u2029now\x85then",
    "a" * 200,
    "İ İİ ß ﬀ",
]


@pytest.fixture(scope="module", params=["float", "int8"])
def parser(request, tiny_bundle):
    return Parser.load(tiny_bundle, precision=request.param, threads=2)


@pytest.fixture
def copy(tiny_bundle, tmp_path):
    return shutil.copytree(tiny_bundle, tmp_path / "bundle")


def test_a_result_says_everything(parser):
    text = TEXTS[0]
    result = parser(text)
    assert result.frame is not None
    assert result.frame.utterance == text
    assert is_valid_frame(result.frame)
    assert str(result) == result.tree == result.frame.to_brackets()
    assert 0 <= result.confidence <= 1  # as it was never trained, it may be sure that it is wrong
    assert len(result.best.leaf_confidences) == len(result.best.leaves)
    assert set(result.times) == {"subwords", "model", "frame"}
    assert all(milliseconds >= 0 for milliseconds in result.times.values())
    value = json.loads(json.dumps(result.to_dict()))
    assert value["text"] == text
    assert value["tree"] == result.tree
    for leaf in value["leaves"]:
        assert leaf["text"] == text[leaf["start"] : leaf["end"]]
    assert result.draw().splitlines()[0] == result.frame.skeleton.label
    assert result._repr_svg_().startswith("<svg")
    assert len(result.best.units) >= 1
    assert all(unit.startswith("[") for unit in result.best.units)
    assert len(value["unit_places"]) == result.frame.skeleton.n_nodes
    assert set(value["unit_places"]) <= set(range(len(value["units"])))
    assert value["passes"] == result.best.passes
    assert len(result.best.unit_places) == result.frame.skeleton.n_nodes
    assert set(result.best.unit_places) == set(range(len(result.best.units)))
    assert result.draw(units=True).splitlines()[0].split() == [result.frame.skeleton.label, "1"]


def test_an_open_parser_needs_its_bundle_no_more(parser, copy):
    opened = Parser.load(copy, precision=parser.precision, threads=2)
    opened.open()
    shutil.rmtree(copy)
    assert opened(TEXTS[0], nbest=3) == parser(TEXTS[0], nbest=3)
    assert opened.batch(TEXTS[:9]) == parser.batch(TEXTS[:9])
    assert opened.batch(TEXTS[:9], nbest=3) == parser.batch(TEXTS[:9], nbest=3)


def test_the_same_answer_alone_in_any_batch_and_from_any_thread(parser):
    alone = [parser(text) for text in TEXTS]
    assert parser.batch(TEXTS) == alone
    assert parser.batch(TEXTS[::-1]) == alone[::-1]
    assert parser.batch(TEXTS[:3] * 20) == alone[:3] * 20
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(parser, TEXTS)) == alone
        assert list(pool.map(lambda start: parser.batch(TEXTS[start::8]), range(8))) == [
            alone[start::8] for start in range(8)
        ]


def test_the_number_of_threads_changes_nothing(parser, tiny_bundle):
    one = Parser.load(tiny_bundle, precision=parser.precision, threads=1)
    assert one.batch(TEXTS) == parser.batch(TEXTS)


@pytest.mark.parametrize("nbest", [2, 5])
def test_nbest_gives_different_frames_with_scores_that_add_up(parser, nbest):
    for text in TEXTS[:10]:
        result = parser(text, nbest=nbest)
        frames = [candidate.frame for candidate in result.candidates]
        assert len(frames) == len({frame.to_brackets() for frame in frames}) == nbest
        scores = [candidate.score for candidate in result.candidates]
        assert math.isclose(sum(scores), 1)
        assert scores == sorted(scores, reverse=True)
        confidences = [candidate.confidence for candidate in result.candidates]
        assert confidences == sorted(confidences, reverse=True)
        assert len(result.to_dict()["nbest"]) == nbest


def test_a_low_confidence_text_is_not_understood(parser):
    result = parser(TEXTS[0], min_confidence=1.0)
    assert not result.understood
    assert result.frame is None
    assert str(result) == result.draw() == "not understood"
    assert result.to_dict()["tree"] is None
    assert parser(TEXTS[0], min_confidence=result.confidence).understood


@pytest.mark.parametrize("text", STRANGE)
def test_strange_texts_give_valid_frames_that_quote_them(parser, text):
    result = parser.try_batch([text])[0]
    if isinstance(result, TextError):
        assert "too long" in str(result) or "nothing in it" in str(result)
        return
    assert is_valid_frame(result.best.frame)
    for leaf in result.best.leaves:
        assert text[leaf.chars.start : leaf.chars.end] == leaf.text
    json.dumps(result.to_dict()).encode()
    assert str(result)


@given(text=st.text(max_size=60))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_text_gives_a_valid_frame_or_says_why_not(parser, text):
    result = parser.try_batch([text])[0]
    if isinstance(result, TextError):
        assert "\n" not in str(result)
    else:
        assert is_valid_frame(result.best.frame)
        assert parser(text) == result


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the text is empty"),
        (" \t\n ", "no readable characters"),
        ("\u200b", "no readable characters"),
        ("word " * 10_000, "too long: the encoder takes 40"),
        ("x" * 200_000, "200,000 characters is too long"),
    ],
)
def test_texts_that_cannot_be_read(parser, text, reason):
    with pytest.raises(TextError, match=reason):
        parser(text)
    with pytest.raises(TextError, match=f"text 1: .*{reason}"):
        parser.batch([TEXTS[0], text])
    good, bad = parser.try_batch([TEXTS[0], text])
    assert good == parser(TEXTS[0])
    assert isinstance(bad, TextError)


def test_wrong_options(parser, tiny_bundle):
    for options in ({"nbest": 0}, {"nbest": 10_000}, {"min_confidence": 1.5}, {"min_confidence": float("nan")}):
        with pytest.raises(OptionError):
            parser("call mom", **options)
    with pytest.raises(OptionError, match="a list of texts, got one text"):
        parser.batch("call mom")
    with pytest.raises(OptionError, match="text 0 must be a str, got int"):
        parser(b"call mom")
    with pytest.raises(OptionError, match="threads must be"):
        Parser.load(tiny_bundle, threads=0)
    with pytest.raises(OptionError, match="precision must be one of float, int8"):
        Parser.load(tiny_bundle, precision="int4")
    assert parser.batch([]) == []


@pytest.mark.parametrize(
    "name",
    ["onnx/int8/parse.onnx", "subwords.json", "config.json", "training.json", "README.md", "tokenizer/tokenizer.json"],
)
def test_a_flipped_byte_is_found(copy, name):
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / name).write_bytes(data)
    with pytest.raises(BundleError, match="damaged: its checksum does not match"):
        Parser.load(copy, precision="int8")("call mom")


@pytest.mark.parametrize("name", ["onnx/int8/parse.onnx", "runtime.json", "tokenizer/tokenizer.json"])
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    with pytest.raises(BundleError, match=f"{name}: missing"):
        Parser.load(copy)("call mom")


def change_manifest(folder, **changes):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))


def test_a_newer_format_is_refused(copy):
    change_manifest(copy, version=99)
    with pytest.raises(BundleError, match="format version 99 is newer .* upgrade treepiece"):
        Parser.load(copy)


def test_a_trained_model_without_graphs_says_what_to_do(tiny_bundle):
    with pytest.raises(BundleError, match="without graphs: export it with `treepiece export"):
        Parser.load(tiny_bundle.parent / "model")


def test_a_precision_that_is_not_there(copy):
    files = {name: digest for name, digest in read_bundle(copy).files.items() if "float/" not in name}
    change_manifest(copy, files=files)
    with pytest.raises(BundleError, match="no graphs in float: the bundle has int8"):
        Parser.load(copy, precision="float")
    assert Parser.load(copy).precision == "int8"


def test_a_read_only_bundle_is_enough(copy):
    for folder, _, files in os.walk(copy):
        for name in files:
            os.chmod(os.path.join(folder, name), 0o444)
        os.chmod(folder, 0o555)
    try:
        assert Parser.load(copy)(TEXTS[0]).frame is not None
    finally:
        for folder, _, _ in os.walk(copy):
            os.chmod(folder, 0o755)


def test_parsing_loads_no_pytorch(tiny_bundle):
    code = (
        "import sys; from treepiece import Parser; print(Parser.load(sys.argv[1])('call mom'));"
        "assert not {'torch', 'transformers', 'onnx', 'lightning', 'typer', 'rich'} & set(sys.modules), sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tiny_bundle)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("[IN:")


def test_a_leaf_without_a_word_is_not_trusted():
    """More leaves than words: what is left over is empty, and is no reason to trust the others."""
    skeleton = Node("IN:A", [Node("SL:B"), Node("SL:B")])
    scores = np.log(np.array([[0.5], [0.5]]))
    found = fill_leaves(Derivation(skeleton, (0,), math.log(0.5)), SpanScores(scores, scores))
    leaves = [confidence(log_p, 1.0) for log_p in found.leaf_log_p]
    assert min(leaves) == confidence(found.log_p, 1.0) == 0
    assert max(leaves) == pytest.approx(0.5**3, rel=1e-5)


def rewrite(folder, name, value):
    """Replace a file of a bundle, and its checksum in the manifest: what a faulty tool would write."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    (folder / name).write_bytes(data)
    files = json.loads((folder / "manifest.json").read_text())["files"]
    change_manifest(folder, files=files | {name: hashlib.sha256(data).hexdigest()})


def changed(value, path, new):
    if not path:
        return new
    *above, last = path
    value = json.loads(json.dumps(value))
    place = value
    for key in above:
        place = place[key]
    place[last] = new
    return value


@pytest.mark.parametrize(
    ("name", "path", "new", "message"),
    [
        ("decoding.json", ["temperatures"], None, "decoding.json: temperatures: expected settings by name, found None"),
        ("decoding.json", ["rerank_threshold"], math.nan, "decoding.json: rerank_threshold: expected a number"),
        ("decoding.json", ["beam"], "8", "decoding.json: beam: expected a whole number"),
        ("config.json", ["model", "labels"], [1, 2], "config.json: model.labels: not what a model can have"),
        ("config.json", ["model", "kind"], "rnn", "config.json: model.kind: not what a model can have"),
        ("config.json", ["model", "extensions"], {"reranker": 1}, "config.json: model.extensions: not what"),
        ("config.json", ["model", "extensions", "more"], True, "config.json: model.extensions.more: not known"),
        ("config.json", ["model", "decoder", "n_heads"], 0, "config.json: model.decoder: n_heads must be"),
        (
            "config.json",
            ["max_length"],
            None,
            "config.json: max_length: expected a whole number, 3 or more, found None",
        ),
        ("config.json", ["encoder", "hidden_size"], 8, "a graph of another model: its input prefix is"),
        (
            "config.json",
            ["encoder", "vocab_size"],
            9,
            "subwords.json: the subword tokenizer has the id .* encoder knows 9",
        ),
        ("config.json", ["encoder"], None, "config.json: encoder.vocab_size: expected a whole number"),
        ("config.json", ["model", "pairs"], [[None, "IN:NEW"]], "config.json: model.pairs: the label 'IN:NEW' is not"),
        ("config.json", ["model", "pairs"], [], "config.json: no tree can be completed .* needs the pairs"),
        ("config.json", ["model", "labels"], [], "config.json: model.labels: not what"),
    ],
)
def test_values_that_make_no_sense_are_named(copy, name, path, new, message):
    rewrite(copy, name, changed(json.loads((copy / name).read_text()), path, new))
    with pytest.raises(BundleError, match=message):
        Parser(copy)


@pytest.mark.parametrize("name", ["config.json", "decoding.json"])
def test_every_key_is_needed(copy, name):
    value = json.loads((copy / name).read_text())
    parts = {"config.json": [(), ("model",), ("model", "decoder")], "decoding.json": [(), ("temperatures",)]}
    for path in parts[name]:
        part = value
        for key in path:
            part = part[key]
        for key in part:
            rewrite(copy, name, changed(value, path, {other: part[other] for other in part if other != key}))
            with pytest.raises(BundleError, match=rf"{name}: .*{key}"):
                Parser(copy)


def test_graphs_that_were_exchanged_are_named(copy):
    units, spans = ((copy / f"onnx/int8/{name}.onnx").read_bytes() for name in ("units", "spans"))
    rewrite(copy, "onnx/int8/units.onnx", spans)
    rewrite(copy, "onnx/int8/spans.onnx", units)
    with pytest.raises(
        BundleError, match="onnx/int8/units.onnx: not the graph that belongs here: its inputs and outputs"
    ):
        Parser(copy, precision="int8")


def test_an_older_format_says_how_to_export_again(copy):
    change_manifest(copy, version=1)
    with pytest.raises(
        BundleError, match="format version 1 is older .* `treepiece export --model DIR --output BUNDLE`"
    ):
        Parser(copy)


def test_names_that_people_try(parser):
    assert parser.parse(TEXTS[0]) == parser(TEXTS[0])
    assert parser(TEXTS[:3]) == parser.batch(TEXTS[:3])
    assert all(label.startswith(("IN:", "SL:")) for label in parser.labels)
    assert repr(parser).startswith("Parser(")
