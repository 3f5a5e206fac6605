"""Requests and answers, without a network in between."""

import asyncio
import json
import logging
import shutil
from dataclasses import replace

import pytest
from serving_tools import PATIENT, ask, block, client_of, expected, plain, until

from treepiece.data.toy import toy_rows
from treepiece.definition import ModelKind
from treepiece.errors import TextError
from treepiece.runtime.parser import Parser
from treepiece.serving import schema
from treepiece.serving.app import create_app
from treepiece.serving.service import fingerprint
from treepiece.serving.settings import Settings

TEXTS = list(dict.fromkeys(utterance for _, utterance, _ in toy_rows(60)))
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def app(parser):
    return create_app(parser)


def problem(response):
    assert response.headers["content-type"] == "application/problem+json"
    value = response.json()
    schema.ProblemAnswer.model_validate(value)
    assert value["status"] == response.status_code
    assert value["request_id"] == response.headers["x-request-id"]
    return value


def test_one_text(app, parser):
    response = ask(app, "POST", "/v1/parse", json={"text": TEXTS[0]})
    assert response.status_code == 200
    value = response.json()
    schema.ParseAnswer.model_validate(value)
    assert plain(value) == expected(parser, TEXTS[0])
    assert value["milliseconds"].keys() == {"subwords", "model", "frame"}


@pytest.mark.parametrize("options", [{}, {"nbest": 3}, {"min_confidence": 1}, {"nbest": 2.0, "min_confidence": 0.5}])
def test_several_texts(app, parser, options):
    response = ask(app, "POST", "/v1/parse", json={"texts": [*TEXTS[:5], "", "\u0000"], **options})
    assert response.status_code == 200
    *found, empty, control = response.json()["results"]
    asked = {name: int(value) if name == "nbest" else value for name, value in options.items()}
    assert [plain(value) for value in found] == [expected(parser, text, **asked) for text in TEXTS[:5]]
    for text, value in (("", empty), ("\u0000", control)):
        with pytest.raises(TextError) as caught:
            parser(text)
        assert value == {"text": text, "error": str(caught.value)}


@pytest.mark.parametrize("kind", ["Application/JSON", 'application/json; x=1; charset="UTF-8"'])
def test_content_types_that_are_json(app, kind):
    response = ask(app, "POST", "/v1/parse", content=b'{"text": "call mom"}', headers={"Content-Type": kind})
    assert response.status_code == 200


def test_no_texts(app):
    assert ask(app, "POST", "/v1/parse", json={"texts": []}).json() == {"results": []}


def test_concurrent_requests_are_answered_as_if_each_came_alone(parser):
    app = create_app(parser, Settings(**PATIENT, batch_size=12))  # room for two texts of each nbest: 1, 2 and 3
    asked = [
        {"text": text, "nbest": 1 + number % 3, "min_confidence": (number % 4) / 4} for number, text in enumerate(TEXTS)
    ]

    gate = block(app)

    async def main():
        async with client_of(app) as client:
            tasks = [asyncio.create_task(client.post("/v1/parse", json=value)) for value in asked]
            await until(lambda: len(app.state.service.batcher._orders) >= 20)  # else each might be alone in its batch
            gate.go.set()
            return await asyncio.gather(*tasks)

    answers = asyncio.run(main())
    for value, answer in zip(asked, answers, strict=True):
        assert plain(answer.json()) == expected(parser, **value)
    assert max(gate.sizes) > 1


def test_a_tree_in_units_out(app, parser):
    tokenizer = parser.definition.tokenizer
    result = parser(TEXTS[0])
    response = ask(app, "POST", "/v1/tokenize", json={"tree": str(result)})
    value = response.json()
    schema.TokenizeAnswer.model_validate(value)
    ids = [unit["id"] for unit in value["units"]]
    assert tokenizer.decode(ids) == result.frame.skeleton
    assert [unit["text"] for unit in value["units"]] == [str(tokenizer.units[unit_id]) for unit_id in ids]
    assert value["unit_places"] == tokenizer.places(ids)
    assert value["skeleton"] == result.to_dict()["skeleton"]


@pytest.mark.parametrize(
    ("tree", "detail"),
    [
        ("", "col 1: no tree in an empty text"),
        ("[IN:A", "col 6: the text ends but [IN:A of col 1 is still open: add ']'"),
        ("[IN:NOT_THERE ]", "label 'IN:NOT_THERE' is not in the vocabulary"),
        ("x " * 6000, "the tree is too long: at most 10,000 characters, got 12,000"),
        ("[IN:A " * 1600 + "] " * 100, "col "),
    ],
)
def test_trees_that_are_none(app, tree, detail):
    response = ask(app, "POST", "/v1/tokenize", json={"tree": tree})
    assert response.status_code == 422
    assert problem(response)["detail"].startswith(detail)


def test_a_deep_tree(app, parser):
    label = next(label for label in parser.definition.labels if label.startswith("IN:"))
    tree = f"[{label} " * 300 + "] " * 300
    value = ask(app, "POST", "/v1/tokenize", json={"tree": tree}).json()
    assert len(value["unit_places"]) == 300


def test_the_model(app, parser):
    value = ask(app, "GET", "/v1/model").json()
    schema.ModelAnswer.model_validate(value)
    assert value["labels"] == list(parser.definition.labels)
    assert value["units"] == len(parser.definition.tokenizer.units)
    assert value["scores"]["em"] == parser.metadata["quality"]["int8"]["em"]
    assert value["limits"]["texts"] == 128
    assert (value["kind"], value["precision"], value["data"]) == ("treepiece", "int8", "toy rows")


BAD = [
    ({"content": b'{"text": "a"}', "headers": {"Content-Type": "text/plain"}}, 415, "wrong-type", "got 'text/plain'"),
    ({"content": b'{"text": "a"}'}, 415, "wrong-type", "the content type must be application/json, got none"),
    (
        {"content": b'{"text": "a"}', "headers": {"Content-Type": "application/json; charset=latin-1"}},
        415,
        "wrong-type",
        "charset=latin-1",
    ),
    ({"content": b"{}", "headers": {**JSON, "Content-Encoding": "gzip"}}, 415, "wrong-type", "not be compressed"),
    ({"content": b"", "headers": JSON}, 400, "broken-json", "line 1, col 1: expecting value"),
    ({"content": b'{"text": "a"', "headers": JSON}, 400, "broken-json", "the body is not JSON: line 1, col 13"),
    ({"content": b'{"text": "\xff"}', "headers": JSON}, 400, "broken-json", "byte 10 is not UTF-8"),
    ({"content": b'{"text": "a\x00"}', "headers": JSON}, 400, "broken-json", "col 12: invalid control character"),
    ({"content": b'\xef\xbb\xbf{"text": "a"}', "headers": JSON}, 400, "broken-json", "line 1, col 1"),
    ({"content": '{"text": "a"}'.encode("utf-16"), "headers": JSON}, 400, "broken-json", "not UTF-8"),
    ({"content": b'{"text": "a", "nbest": NaN}', "headers": JSON}, 400, "broken-json", "NaN is not a number in JSON"),
    (
        {"content": b'{"text": "a", "min_confidence": -Infinity}', "headers": JSON},
        400,
        "broken-json",
        "-Infinity is not a number in JSON",
    ),
    ({"content": b"[" * 200_000, "headers": JSON}, 400, "broken-json", "nested too deeply"),
    ({"content": b'{"a":' * 100_000, "headers": JSON}, 400, "broken-json", "nested too deeply"),
    ({"content": b'{"text": "a", "nbest": ' + b"9" * 5000 + b"}", "headers": JSON}, 400, "broken-json", "4300 digits"),
    ({"content": b'{"text": "' + b"a" * (1 << 19) + b'"}', "headers": JSON}, 413, "too-large", "got 524,300 bytes"),
    ({"json": ["call mom"]}, 422, "bad-input", "the body must be a JSON object; its keys are text, texts, nbest"),
    ({"json": {}}, 422, "bad-input", "give one text as 'text', or a list of them as 'texts', got neither"),
    ({"json": {"text": "a", "texts": ["a"]}}, 422, "bad-input", "got both"),
    ({"json": {"text": "a", "n_best": 3}}, 422, "bad-input", "'n_best' is unknown: the keys are text, texts,"),
    ({"json": {"text": "a", "x" * 1000: 3}}, 422, "bad-input", "'" + "x" * 60 + "' is unknown"),
    ({"json": {"text": None}}, 422, "bad-input", "text must be a text, got null"),
    ({"json": {"text": ["a"]}}, 422, "bad-input", "text must be a text, got a list"),
    ({"json": {"texts": "a"}}, 422, "bad-input", "texts must be a list of texts, got a text"),
    ({"json": {"texts": ["a", 7]}}, 422, "bad-input", "text 1 must be a text, got a number"),
    ({"json": {"texts": ["a"] * 1000}}, 422, "bad-input", "texts must be at most 128 at a time, got 1,000: send"),
    ({"json": {"text": "a " * 5001}}, 422, "bad-input", "the text is too long: at most 10,000 characters, got 10,002"),
    ({"json": {"texts": ["a", "b" * 10_001]}}, 422, "bad-input", "text 1 is too long"),
    ({"json": {"text": ""}}, 422, "bad-input", "the text is empty, got '': give an utterance of one word or more"),
    ({"json": {"text": "\u0000"}}, 422, "bad-input", "has no readable characters, got '\\x00'"),
    ({"json": {"text": "word " * 1000}}, 422, "bad-input", "an utterance of 1002 subwords is too long: the encoder"),
    ({"json": {"text": "a", "nbest": 0}}, 422, "bad-input", "nbest must be a whole number, from 1 to 100, got 0"),
    (
        {"json": {"text": "a", "nbest": 10_000}},
        422,
        "bad-input",
        "nbest must be a whole number, from 1 to 100, got 10000",
    ),
    ({"json": {"text": "a", "nbest": 2.5}}, 422, "bad-input", "nbest must be a whole number, from 1 to 100, got 2.5"),
    ({"json": {"text": "a", "nbest": True}}, 422, "bad-input", "nbest must be a whole number, from 1 to 100, got True"),
    ({"json": {"text": "a", "nbest": "3"}}, 422, "bad-input", "nbest must be a whole number, from 1 to 100, got '3'"),
    ({"json": {"text": "a", "nbest": "3" * 99}}, 422, "bad-input", "from 1 to 100, got a text"),
    (
        {"content": b'{"text": "a", "nbest": ' + b"[" * 900 + b"]" * 900 + b"}", "headers": JSON},
        422,
        "bad-input",
        "nbest must be a whole number, from 1 to 100, got a list",
    ),
    ({"content": b'{"text": "a", "nbest": 1e999}', "headers": JSON}, 422, "bad-input", "from 1 to 100, got inf"),
    ({"json": {"texts": ["a"] * 11, "nbest": 100}}, 422, "bad-input", "texts times nbest must be at most 1,000"),
    (
        {"json": {"text": "a" * 9000, "nbest": 12}},
        422,
        "bad-input",
        "every 100 characters of a text count as one, got 1,080",
    ),
    ({"json": {"texts": ["a" * 5000] * 21}}, 422, "bad-input", "got 1,050: send fewer or shorter texts, or ask"),
    ({"json": {"text": "a", "min_confidence": 1.5}}, 422, "bad-input", "min_confidence must be a number from 0 to 1, "),
    ({"json": {"text": "a", "min_confidence": {}}}, 422, "bad-input", "from 0 to 1, got an object"),
]


@pytest.mark.parametrize(("request_", "status", "kind", "detail"), BAD, ids=[detail[-40:] for *_, detail in BAD])
def test_bad_input(app, request_, status, kind, detail):
    response = ask(app, "POST", "/v1/parse", **request_)
    value = problem(response)
    assert (response.status_code, value["type"]) == (status, f"/docs#{kind}")
    assert detail in value["detail"]
    assert len(value["detail"]) < 700


def test_a_body_without_a_length_that_is_too_large(app):
    async def body():
        for _ in range(40):
            yield b"a" * 40_000

    async def main():
        async with client_of(app) as client:
            return await client.post("/v1/parse", content=body(), headers=JSON)

    assert problem(asyncio.run(main()))["type"] == "/docs#too-large"


def test_lone_surrogates_and_null_bytes_are_texts_as_they_are_for_the_library(app, parser):
    text = "call \ud800 mom\x00 at 8"
    response = ask(app, "POST", "/v1/parse", content=json.dumps({"text": text}).encode(), headers=JSON)
    assert response.status_code == 200
    assert plain(json.loads(response.content)) == expected(parser, text)


def test_the_best_candidate_does_not_depend_on_nbest(app):
    """Same text, same best candidate, same confidences and passes, whatever is asked for, alone and in a list."""
    shared = ("text", "understood", "tree", "skeleton", "confidence", "leaves", "units", "unit_places", "passes")
    for text in TEXTS[:12]:
        answers = [
            ask(app, "POST", "/v1/parse", json=value).json()
            for value in ({"text": text}, {"text": text, "nbest": 4}, {"text": text, "nbest": 10})
        ]
        answers.append(ask(app, "POST", "/v1/parse", json={"texts": [text, TEXTS[0]], "nbest": 2}).json()["results"][0])
        assert all(
            {name: answer[name] for name in shared} == {name: answers[0][name] for name in shared} for answer in answers
        )


def test_answers_are_utf_8(app, parser):
    text = "rappelle-moi 👩‍👩‍👧 à Zürich: 東京"
    response = ask(app, "POST", "/v1/parse", json={"text": text})
    assert text.encode() in response.content
    assert plain(response.json()) == expected(parser, text)


def test_hostile_texts_come_back_as_they_went(app, parser):
    for text in ("<script>alert(1)</script>", "call mom ' OR 1=1 --", "\u202e\u0007 ]] [IN:A", "😀" * 30):
        assert plain(ask(app, "POST", "/v1/parse", json={"text": text}).json()) == expected(parser, text)


def test_where_there_is_nothing(app):
    assert problem(ask(app, "GET", "/v1/nothing"))["detail"].startswith("no such path: '/v1/nothing'")
    response = ask(app, "DELETE", "/v1/parse")
    assert (problem(response)["status"], response.headers["allow"]) == (405, "POST")
    assert ask(app, "GET", "/../../etc/passwd").status_code == 404
    assert ask(app, "POST", "/livez").status_code == 405


def test_versions_tell_precisions_apart(tiny_bundle):
    versions = {fingerprint(Parser.load(tiny_bundle, precision=name, threads=1)) for name in ("float", "int8", "int8")}
    assert len(versions) == 2


def test_a_baseline_has_no_units(tiny_bundle):
    parser = Parser.load(tiny_bundle, threads=1)
    parser.definition = replace(parser.definition, kind=ModelKind.NAR, tokenizer=None)
    app = create_app(parser)
    response = ask(app, "POST", "/v1/tokenize", json={"tree": "[IN:A ]"})
    assert problem(response)["type"] == "/docs#no-units"
    response = ask(app, "POST", "/v1/parse", json={"text": "call mom", "nbest": 2})
    assert problem(response)["detail"].startswith("a non-autoregressive parser has one candidate for a text")
    assert ask(app, "GET", "/v1/model").json()["units"] is None


def test_a_bundle_that_is_deleted_while_it_is_served(tiny_bundle, tmp_path, parser):
    shutil.copytree(tiny_bundle, tmp_path / "bundle")
    app = create_app(Parser.load(tmp_path / "bundle", threads=2))
    shutil.rmtree(tmp_path / "bundle")
    for value in ({"text": TEXTS[0]}, {"text": TEXTS[1], "nbest": 3}, {"texts": TEXTS[:4], "nbest": 2}):
        assert ask(app, "POST", "/v1/parse", json=value).status_code == 200
    assert ask(app, "GET", "/v1/model").json()["units"] > 0
    assert ask(app, "POST", "/v1/tokenize", json={"tree": str(parser(TEXTS[0]))}).status_code == 200


def test_a_fault_is_told_without_its_reasons(make_app, monkeypatch, caplog):
    app = make_app()
    monkeypatch.setattr(app.state.service.batcher, "work", lambda task, items: 1 / 0)
    with caplog.at_level(logging.ERROR, "treepiece.serving"):
        response = ask(app, "POST", "/v1/parse", json={"text": "call mom"})
    assert (response.status_code, problem(response)["type"]) == (500, "/docs#fault")
    (record,) = caplog.records
    assert record.fields["error"] == "ZeroDivisionError"
    assert record.fields["id"] == response.headers["x-request-id"]
