"""The server keeps to its OpenAPI description: no fault, and no answer that the description does not have."""

import pytest
from hypothesis import given, settings
from serving_tools import LONGEST, PATIENT, served

from treepiece.serving.app import create_app
from treepiece.serving.settings import Settings

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install 'treepiece[dev]'")

pytestmark = pytest.mark.slow

OPERATIONS = [
    ("/v1/parse", "POST"),
    ("/v1/tokenize", "POST"),
    ("/v1/model", "GET"),
    ("/livez", "GET"),
    ("/readyz", "GET"),
    ("/metrics", "GET"),
]
LIMITS = {"max_texts": 8, "max_characters": 300, **PATIENT}


@pytest.fixture(scope="module")
def description(parser):
    with served(create_app(parser, Settings(**LIMITS))) as port:
        yield schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")


@pytest.fixture(scope="module")
def guarded(parser):
    with served(create_app(parser, Settings(**LIMITS, token="secret"))) as port:
        yield schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")


def checks():
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as found

    return [
        not_a_server_error,
        found.status_code_conformance,
        found.content_type_conformance,
        found.response_headers_conformance,
        found.response_schema_conformance,
        found.negative_data_rejection,
        found.allow_header_conformance,
    ]


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_answers_are_those_of_the_description(description, path, method, mode):
    if method == "GET" and mode == schemathesis.GenerationMode.NEGATIVE:
        pytest.skip("there is nothing in such a request that could be wrong")

    @settings(max_examples=40)
    @given(case=description[path][method].as_strategy(generation_mode=mode))
    def check(case):
        case.call_and_validate(checks=checks(), timeout=LONGEST)

    check()


@pytest.mark.parametrize("token", [None, "wrong", "secret"])
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_a_server_with_a_token_keeps_to_its_description_too(guarded, path, method, token):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    is_refused = token != "secret" and path not in ("/livez", "/readyz")

    @settings(max_examples=10)
    @given(case=guarded[path][method].as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE))
    def check(case):
        case.headers.pop("Authorization", None)  # tokens that were made up
        response = case.call_and_validate(checks=checks(), headers=headers, timeout=LONGEST)
        assert (response.status_code == 401) == is_refused

    check()


def test_every_path_says_what_may_go_wrong(parser):
    for operations in create_app(parser).openapi()["paths"].values():
        for operation in operations.values():
            assert "500" in operation["responses"]
            if "requestBody" in operation:
                assert {"400", "408", "413", "415", "422", "503"} <= operation["responses"].keys()
