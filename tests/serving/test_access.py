"""Who may call, what browsers may do with answers, what is counted and what is logged."""

import io
import json
import logging
import re

import pytest
from serving_tools import ask
from starlette.applications import Starlette
from starlette.routing import Mount

from treepiece.errors import OptionError
from treepiece.serving.app import PAGE
from treepiece.serving.logs import LOGGER, JsonFormatter
from treepiece.serving.middleware import OWN_FILES
from treepiece.serving.server import LOOPBACK_NAMES, allowed_hosts, listen
from treepiece.serving.settings import Settings

OPEN = ["/livez", "/readyz", "/docs", "/openapi.json"]
PAGES = {"/docs", "/openapi.json"}
GUARDED = ["/v1/model", "/metrics"]
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
TEXT = "remind me to call grace"


@pytest.mark.parametrize("path", [*OPEN, *GUARDED])
def test_without_a_token_everybody_may_call(make_app, path):
    assert ask(make_app(), "GET", path).status_code == 200


@pytest.mark.parametrize(
    "value", [None, "", "Bearer", "Bearer wrong", "Bearer secret2", "Basic secret", "secret", "Bearer \u00ff"]
)
def test_a_wrong_token(make_app, value):
    app = make_app(token="secret")
    headers = {} if value is None else {b"Authorization": value.encode("latin-1")}
    for path in GUARDED:
        response = ask(app, "GET", path, headers=headers)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, 'Bearer realm="treepiece"')
        assert response.json()["type"] == "/docs#no-token"
    assert ask(app, "POST", "/v1/parse", json={"text": TEXT}, headers=headers).status_code == 401


def test_the_right_token(make_app):
    app = make_app(token="secret")
    headers = {"Authorization": "bearer secret"}
    assert all(ask(app, "GET", path, headers=headers).status_code == 200 for path in GUARDED)
    assert ask(app, "POST", "/v1/parse", json={"text": TEXT}, headers=headers).status_code == 200
    assert all(ask(app, "GET", path).status_code == 200 for path in OPEN)
    assert ask(app, "GET", "/openapi.json").json()["paths"]["/v1/parse"]["post"]["security"] == [{"token": []}]


@pytest.mark.parametrize("prefix", ["", "/parser", "/v1", "/livez"])
@pytest.mark.parametrize("how", ["mount", "root_path", "both"])
def test_the_token_is_asked_for_wherever_the_application_is_mounted(make_app, logged, prefix, how):
    if how != "mount" and not prefix:
        pytest.skip("this is no prefix")
    inner = make_app(token="secret")
    app = inner if how == "root_path" else Starlette(routes=[Mount(prefix, inner)])

    async def behind_a_proxy(scope, receive, send):
        root = {"root_path": prefix if how == "root_path" else "/outside"} if how != "mount" else {}
        path = {"path": f"/outside{scope['path']}"} if how == "both" else {}
        await app({**scope, **path, **root}, receive, send)

    headers = {"Authorization": "Bearer secret"}
    for path in GUARDED:
        assert ask(behind_a_proxy, "GET", prefix + path).status_code == 401
        assert ask(behind_a_proxy, "GET", prefix + path, headers=headers).status_code == 200
    assert ask(behind_a_proxy, "POST", f"{prefix}/v1/parse", json={"text": TEXT}).status_code == 401
    for path in OPEN:
        assert ask(behind_a_proxy, "GET", prefix + path).status_code == 200
    paths = [record["path"] for record in logged() if record["event"] == "request"]
    assert paths == [*(path for path in GUARDED for _ in range(2)), "/v1/parse", *OPEN]


def test_every_other_path_needs_the_token(make_app):
    """Without the token there are the open paths and the files of the page, and nothing else, however it is written."""
    app = make_app(token="secret")
    assert {path for path in app.openapi()["paths"] if ask(app, "GET", path).status_code == 200} == {*OPEN} - PAGES
    for path in ("/nothing", "/livez/", "/livez//", "/docs/x", "/V1/model", "/metrics/", "/v1", "/%76%31/model"):
        assert ask(app, "GET", path).status_code in (401, 404), path
    assert ask(app, "GET", "/%76%31/model").status_code == 401


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:80", "parse.example.org"])
def test_names_that_are_allowed(make_app, host):
    app = make_app(allowed_hosts=("localhost", "127.0.0.1", "*.example.org"))
    assert ask(app, "GET", "/v1/model", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "example.org", "127.0.0.1.evil.example", ""]
)
def test_names_that_are_not(make_app, host):
    """DNS rebinding: a web page whose name resolves to this machine is told nothing."""
    app = make_app(allowed_hosts=("localhost", "127.0.0.1", "*.example.org"))
    headers = {"Host": host, "Origin": f"http://{host}"}
    for method, path in (
        ("GET", "/v1/model"),
        ("POST", "/v1/parse"),
        ("GET", "/"),
        ("GET", "/livez"),
        ("OPTIONS", "/"),
    ):
        response = ask(app, method, path, headers=headers)
        assert (response.status_code, response.text) == (400, "Invalid host header")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("address", "options", "names"),
    [
        ("127.0.0.1", (), LOOPBACK_NAMES),
        ("127.0.0.5", (), (*LOOPBACK_NAMES, "127.0.0.5")),
        ("127.0.0.1", ("parse.example.org",), (*LOOPBACK_NAMES, "parse.example.org")),
        ("0.0.0.0", (), ()),
        ("0.0.0.0", ("parse.example.org",), (*LOOPBACK_NAMES, "0.0.0.0", "parse.example.org")),
    ],
)
def test_which_names_are_allowed_by_default(address, options, names):
    settings = Settings(allowed_hosts=options)
    with listen(address, 0, settings) as listener:
        assert allowed_hosts(listener, settings) == names


@pytest.mark.parametrize(
    "origin", ["*", "https://example.org", "http://localhost:8000", "http://[::1]:80", "https://192.0.2.7"]
)
def test_origins(origin):
    assert Settings(origins=(origin,)).origins == (origin,)


@pytest.mark.parametrize("path", [*OPEN, *GUARDED, "/", "/nothing"])
def test_head_is_get_without_a_body(make_app, path):
    app = make_app()
    get, head = (ask(app, method, path) for method in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (get.status_code, b"")
    changing = {"x-request-id", "content-length"} if path in ("/metrics", "/nothing") else {"x-request-id"}
    assert {k: v for k, v in head.headers.items() if k not in changing} == {
        k: v for k, v in get.headers.items() if k not in changing
    }
    assert int(head.headers["content-length"]) > 0
    if path != "/nothing":
        assert ask(app, "POST", path).headers["allow"].replace(" ", "").split(",") in (["GET", "HEAD"], ["HEAD", "GET"])
    assert "head" not in json.dumps([list(value) for value in app.openapi()["paths"].values()])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"token": ""}, "the token must be one or more ASCII characters without blanks"),
        ({"token": "two words"}, "the token must be"),
        ({"queue": 0}, "queue must be a whole number, 1 or more, got 0"),
        ({"answer_seconds": float("nan")}, "answer_seconds must be a number from 0.001 to 3,600, got nan"),
        ({"batch_wait": -1}, "batch_wait must be a number from 0 to 10,000, got -1"),
        ({"origins": ("example.org",)}, "an origin is like https://example.org, without a path, or *, got"),
        ({"concurrency": 0}, "concurrency must be a whole number, 1 or more, got 0"),
        ({"allowed_hosts": ("https://example.org",)}, "an allowed host is like example.org or *.example.org, without"),
        ({"allowed_hosts": ("example.org:80",)}, "an allowed host is like"),
        ({"allowed_hosts": ("a*.example.org",)}, "an allowed host is like"),
        ({"allowed_hosts": ("",)}, "an allowed host is like"),
        ({"origins": ("https://example.org/",)}, "an origin is like"),
        ({"origins": ("https://",)}, "an origin is like"),
        ({"origins": ("https://example.org/page",)}, "an origin is like"),
        ({"origins": ("https://example.org?a",)}, "an origin is like"),
        ({"origins": ("https://me@example.org",)}, "an origin is like"),
        ({"origins": ("https://example.org:http",)}, "an origin is like"),
    ],
)
def test_settings_out_of_range(options, message):
    with pytest.raises(OptionError, match=message.replace("*", r"\*").replace(".", r"\.")):
        Settings(**options)


def test_answers_have_security_headers(make_app):
    app = make_app()
    for path in ("/v1/model", "/nothing", "/docs", "/livez"):
        headers = ask(app, "GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers
    assert ask(app, "GET", "/v1/model").headers["cache-control"] == "no-store"


def test_pages_of_other_sites_may_not_call(make_app):
    app = make_app()
    asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    assert ask(app, "OPTIONS", "/v1/parse", headers=asked).status_code == 405
    response = ask(app, "POST", "/v1/parse", json={"text": TEXT}, headers={"Origin": "https://example.org"})
    assert not [name for name in response.headers if name.startswith("access-control")]
    # What a browser sends without asking first is not JSON.
    headers = {"Origin": "https://example.org", "Content-Type": "text/plain"}
    assert ask(app, "POST", "/v1/parse", content=b'{"text": "call mom"}', headers=headers).status_code == 415


def test_pages_of_named_sites_may_call(make_app):
    app = make_app(origins=("https://example.org",), token="secret")
    asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    response = ask(app, "OPTIONS", "/v1/parse", headers=asked)
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, "https://example.org")
    assert "Authorization" in response.headers["access-control-allow-headers"]
    response = ask(app, "POST", "/v1/parse", json={"text": TEXT}, headers={"Origin": "https://example.org"})
    assert response.status_code == 401
    assert response.headers["access-control-allow-origin"] == "https://example.org"
    assert "X-Request-ID" in response.headers["access-control-expose-headers"]
    response = ask(app, "OPTIONS", "/v1/parse", headers=asked | {"Origin": "https://evil.example"})
    assert response.status_code == 400
    assert "access-control-allow-origin" not in response.headers
    assert "Origin" in response.headers["vary"]


def test_requests_have_names(make_app):
    app = make_app()
    names = {ask(app, "GET", "/livez").headers["x-request-id"] for _ in range(3)}
    assert len(names) == 3
    assert ask(app, "GET", "/livez", headers={"X-Request-ID": "trace-7.a"}).headers["x-request-id"] == "trace-7.a"
    for hostile in ("a b", "x" * 65, "é", '"'):
        headers = {b"X-Request-ID": hostile.encode("latin-1")}
        assert ask(app, "GET", "/livez", headers=headers).headers["x-request-id"] != hostile


def test_metrics(make_app):
    app = make_app()
    ask(app, "POST", "/v1/parse", json={"texts": [TEXT, "", TEXT]})
    ask(app, "POST", "/v1/parse", json={"text": TEXT, "min_confidence": 1})
    ask(app, "GET", "/any/path/whatsoever")
    ask(app, "BREW", "/livez")
    found = ask(app, "GET", "/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = found.text.splitlines()
    for line in (
        'treepiece_requests_total{method="POST",path="/v1/parse",status="200"} 2.0',
        'treepiece_requests_total{method="GET",path="other",status="404"} 1.0',
        'treepiece_requests_total{method="other",path="/livez",status="405"} 1.0',
        'treepiece_request_seconds_count{path="/v1/parse"} 2.0',
        'treepiece_texts_total{outcome="understood"} 2.0',
        'treepiece_texts_total{outcome="not_understood"} 1.0',
        'treepiece_texts_total{outcome="unreadable"} 1.0',
        'treepiece_problems_total{type="not-found"} 1.0',
        "treepiece_batch_size_sum 4.0",
        "treepiece_batch_size_count 2.0",
        "treepiece_queue_length 0.0",
        "treepiece_queue_limit 1024.0",
        "treepiece_requests_under_way 1.0",
    ):
        assert line in lines
    version = ask(app, "GET", "/v1/model").json()["version"]
    assert any(line.startswith("treepiece_model_info{") and f'version="{version}"' in line for line in lines)


@pytest.fixture
def logged():
    """What is logged, as it is written."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    LOGGER.addHandler(handler)
    level, propagate = LOGGER.level, LOGGER.propagate
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(level)
    LOGGER.propagate = propagate


def test_the_log_has_no_texts(make_app, logged, monkeypatch):
    app = make_app()
    ask(app, "POST", "/v1/parse", json={"texts": [TEXT, TEXT]})
    ask(app, "POST", "/v1/parse", json={"text": TEXT * 600})
    ask(app, "POST", "/v1/tokenize", json={"tree": TEXT})
    ask(app, "GET", f"/v1/parse/{TEXT}?text={TEXT}")

    def fail(task, items):
        raise ValueError(f"cannot parse {items}")

    monkeypatch.setattr(app.state.service.batcher, "work", fail)
    ask(app, "POST", "/v1/parse", json={"text": TEXT})
    records = logged()
    assert "grace" not in json.dumps(records)
    assert [record.get("status") for record in records] == [200, 422, 422, 404, None, 500]
    first = records[0]
    assert (first["level"], first["event"], first["method"], first["path"]) == ("info", "request", "POST", "/v1/parse")
    assert first["texts"] == 2
    assert first["milliseconds"] > 0
    assert records[1]["problem"] == "bad-input"
    assert (records[3]["path"], records[4]["event"], records[4]["error"]) == ("other", "fault", "ValueError")


def test_the_log_has_texts_if_that_is_asked_for(make_app, logged):
    ask(make_app(log_texts=True), "POST", "/v1/parse", json={"text": TEXT})
    assert logged()[0]["texts"] == [TEXT]


def test_the_reference(make_app):
    app = make_app()
    page = ask(app, "GET", "/docs").text
    for path in ask(app, "GET", "/openapi.json").json()["paths"]:
        assert path in page
    assert 'id="queue-full"' in page
    assert "http://" not in page.replace("http://HOST", "")
    assert "https://" not in page
    assert "<script" not in page


def test_the_page_is_open_and_has_only_files_of_its_own(make_app):
    app = make_app(token="secret")
    page = ask(app, "GET", "/")
    assert (page.status_code, page.headers["content-security-policy"]) == (200, OWN_FILES)
    for file in re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page.text):
        assert ask(app, "GET", f"/{file.removeprefix('.')}").status_code == 200
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text, path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|style=", text), path
        assert len(text.splitlines()) <= 300, path
        file = ask(app, "GET", f"/page/{path.name}")
        assert file.headers["content-type"].partition(";")[0] == MEDIA_TYPES[path.suffix]
        assert file.headers["cache-control"] == "no-cache"
        again = ask(app, "GET", f"/page/{path.name}", headers={"If-None-Match": file.headers["etag"]})
        assert again.status_code == 304


@pytest.mark.parametrize(
    "path", ["/page/", "/page/../app.py", "/page/%2e%2e/app.py", "/page/.hidden", "/page//etc/passwd"]
)
def test_only_the_files_of_the_page_are_served(make_app, path):
    assert ask(make_app(), "GET", path).status_code == 404
