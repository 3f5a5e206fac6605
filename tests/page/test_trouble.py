"""The page where the server is gone, slow, guarded or another one than usual, and where the text is hostile."""

import json

import pytest
from page_tools import FIRST, SHOWN, install_clock, stop_clock, wait_for
from serving_tools import LONGEST, PATIENT, Process, reserve_port, served

PARSE = "**/v1/parse"
MODEL = "**/v1/model"
QUEUE_FULL = {
    "type": "/docs#queue-full",
    "title": "The queue is full",
    "status": 503,
    "detail": "1,024 candidates wait",
}


@pytest.fixture
def port():
    """A port that is kept: else another test may have it before the server comes back."""
    reserved, port = reserve_port()
    with reserved:
        yield str(port)


def test_the_server_is_gone_and_comes_back(open_page, port):
    with Process("--threads", "1", "--port", port) as server:
        page = open_page(at=f"http://127.0.0.1:{server.port}/", prepare=install_clock)
        wait_for(page, FIRST)
        stop_clock(page)  # else it may ask again by itself before "Try again" is clicked
        server.process.kill()
        server.wait()
        page.fill("#text", "call mom")
        page.locator("#text").press("Enter")
        page.get_by_role("heading", name="The server does not answer").wait_for()
        assert page.locator("#result").is_hidden()
        page.locator("#text").press("ArrowDown")  # there are no candidates to choose from
        assert page.input_value("#text") == "call mom"
    with Process("--threads", "1", "--port", port):
        page.get_by_role("button", name="Try again").click()
        wait_for(page, "call mom")
        assert page.locator("#problem").is_hidden()


def test_it_asks_again_by_itself(open_page):
    page = open_page(prepare=lambda page: (install_clock(page), page.route(PARSE, lambda route: route.abort())))
    page.get_by_role("alert").wait_for()
    page.unroute(PARSE)
    page.clock.fast_forward(5000)
    wait_for(page, FIRST)


class Held:
    """Requests for parses, held until they are let go."""

    def __init__(self, page):
        self.page = page
        self.routes = []
        page.route(PARSE, lambda route: self.routes.append(route))

    def wait_for(self, n):
        """Wait until so many requests are held."""
        for _ in range(100 * LONGEST):
            if len(self.routes) >= n:
                return
            self.page.wait_for_timeout(10)  # the page's events are told meanwhile
        raise AssertionError(f"{len(self.routes)} of {n} requests came")


def test_a_slow_answer(open_page):
    page = open_page(prepare=install_clock)
    wait_for(page, FIRST)
    stop_clock(page)
    held = Held(page)
    page.fill("#text", "call mom")
    page.locator("#text").press("Enter")
    held.wait_for(1)
    assert page.locator("#status").text_content() == ""
    page.clock.run_for(500)
    assert page.locator("#status").text_content() == "Parsing…"
    assert page.locator("#result").get_attribute("aria-busy") == "true"
    page.clock.run_for(2000)
    assert page.locator("#status").text_content() == "Parsing… 2 s"
    held.routes[0].continue_()
    wait_for(page, "call mom")
    assert page.locator("#status").text_content() == ""
    assert page.locator("#result").get_attribute("aria-busy") == "false"


def test_an_old_answer_is_never_shown(open_page, parser):
    page = open_page()
    wait_for(page, FIRST)
    held = Held(page)
    aborted = []
    page.on("requestfailed", lambda request: aborted.append(json.loads(request.post_data)["text"]))
    for number, text in enumerate(("call mom", "wake me at 8 am"), start=1):
        page.locator("#text").evaluate(
            "(field, text) => { field.value = text; }", text
        )  # no key, so no pause to wait for
        page.locator("#text").press("Enter")
        page.get_by_text("Parsing…").wait_for()
        held.wait_for(number)
    for _ in range(100 * LONGEST):
        if aborted:
            break
        page.wait_for_timeout(10)
    assert aborted == ["call mom"]
    held.routes[1].continue_()
    wait_for(page, "wake me at 8 am")
    old = json.dumps(parser("call mom", nbest=4).to_dict())
    held.routes[0].fulfill(body=old, content_type="application/json")
    page.wait_for_timeout(100)
    assert page.locator("#utterance").text_content() == "wake me at 8 am"


@pytest.mark.parametrize(
    "text",
    [
        "<script>window.hacked = 1</script> wake me at 8 <img src=x onerror='window.hacked = 1'>",
        'text mom that </text></svg><svg onload=window.hacked=1> & "quotes" \' `ticks` ${1} {{1}}',
        "javascript:alert(1) remind me to call [IN:A ] ] \\u202e \u202e desrever \u0000 \ud83d end",
    ],
)
def test_hostile_text_is_text(open_page, text):
    page = open_page()
    wait_for(page, FIRST)
    page.locator("#text").evaluate("(field, text) => { field.value = text; }", text)
    page.focus("#text")
    page.keyboard.press("Enter")
    page.wait_for_function("first => document.getElementById('utterance').textContent !== first", arg=FIRST)
    shown = page.locator("#utterance").text_content()
    assert shown == text.replace("\ud83d", "\ufffd")
    for place in range(4):
        page.locator(".candidate input").nth(place).check()
        assert page.locator("#utterance").text_content() == shown
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_long_texts(open_page):
    page = open_page()
    wait_for(page, FIRST)
    page.fill("#text", "x" * 10_000)
    wait_for(page, "x" * 10_000)
    assert page.locator(SHOWN).count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    assert page.locator("#utterance").bounding_box()["height"] < 200
    page.fill("#text", "x" * 10_001)
    page.get_by_text("the text is too long: at most 10,000 characters, got 10,001").wait_for()
    assert page.locator("#result").is_hidden()
    page.fill("#text", "wake me " * 1250)
    page.get_by_role("heading", name="The input is invalid").wait_for()
    page.get_by_text("an utterance of 2502 subwords is too long").wait_for()


def test_a_text_of_blanks_is_not_asked_for(open_page):
    page = open_page()
    wait_for(page, FIRST)
    asked = []
    page.route(PARSE, lambda route: asked.append(route))
    page.fill("#text", "   ")
    page.keyboard.press("Enter")
    page.get_by_text("Type a request, or choose an example.").wait_for()
    assert asked == []


def test_a_token(open_page, parser):
    from treepiece.serving.app import create_app
    from treepiece.serving.settings import Settings

    with served(create_app(parser, Settings(**PATIENT, token="secret"))) as port:
        page = open_page("call mom", at=f"http://127.0.0.1:{port}/")
        page.get_by_role("heading", name="This server asks for a token").wait_for()
        assert page.get_by_text("This token is wrong").is_hidden()
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        page.get_by_text("This token is wrong").wait_for()
        page.fill("#token-text", "secret")
        page.keyboard.press("Enter")
        wait_for(page, "call mom")
        assert page.locator("#token").is_hidden()
        assert page.evaluate("JSON.stringify([localStorage, sessionStorage])") == "[{},{}]"
        page.context.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": 503, "json": QUEUE_FULL, "content_type": "application/problem+json"}, "1,024 candidates wait"),
        ({"status": 502, "body": "<html>Bad gateway"}, "The server answered 502"),
        ({"status": 200, "body": "{"}, "The server answered 200"),
    ],
)
def test_problems_in_the_words_of_the_server(open_page, answer, words):
    page = open_page(prepare=lambda page: page.route(PARSE, lambda route: route.fulfill(**answer)))
    page.get_by_text(words).wait_for()
    page.unroute(PARSE)
    if answer["status"] >= 500:
        page.get_by_role("button", name="Try again").click()
    else:
        page.keyboard.press("Enter")
        page.locator("#text").press("Enter")
    wait_for(page, FIRST)


@pytest.mark.parametrize(("kind", "title"), [("ar", "18 passes, token by token"), ("nar", "1 pass instead of 18")])
def test_a_model_without_units(open_page, parser, kind, title):
    """A baseline has no units; a non-autoregressive one answers only if one candidate is asked for."""
    asked = []

    def describe(route):
        response = route.fetch()
        route.fulfill(response=response, json=response.json() | {"kind": kind, "units": None})

    def answer(route):
        asked.append(json.loads(route.request.post_data)["nbest"])
        value = parser(FIRST).to_dict() | {"units": [], "unit_places": [], "passes": 18 if kind == "ar" else 1}
        route.fulfill(json=value)

    page = open_page(prepare=lambda page: (page.route(MODEL, describe), page.route(PARSE, answer)))
    wait_for(page, FIRST)
    assert asked == [4 if kind == "ar" else 1]
    assert page.locator("#replay-title").text_content() == title
    assert page.locator(".badge, .unit").count() == 0
    assert page.locator("#candidates").is_hidden()
    assert page.locator(SHOWN).count() == 6
    page.locator("#scrub").fill("1")
    assert page.locator(SHOWN).count() == (1 if kind == "ar" else 6)
    assert page.locator("#utterance mark:not(.pending)").count() == (0 if kind == "ar" else 3)
