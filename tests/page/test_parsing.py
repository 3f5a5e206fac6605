"""What the page shows of a text, held against what the library says of it."""

import io
import json
import re
from contextlib import redirect_stdout
from urllib.request import Request, urlopen

import pytest
from page_tools import (
    CANDIDATES,
    FIRST,
    NESTED,
    SHOWN,
    drawn,
    expected,
    install_clock,
    stop_clock,
    underlined,
    wait_for,
    words,
)


def test_a_stranger_sees_a_tree_at_once(open_page, parser):
    page = open_page()
    wait_for(page, FIRST)
    best = parser(FIRST, nbest=CANDIDATES).best
    assert drawn(page) == expected(best)
    assert underlined(page) == words(best)
    assert page.locator(".words text:not(.confidence)").all_text_contents() == words(best)
    assert page.locator("h1").text_content() == "A request becomes a tree, one whole subtree at a time."
    assert page.get_by_role("link", name="API reference").get_attribute("href") == "docs"
    assert page.locator("#confidence .figure").text_content() == f"{best.confidence * 100:.0f} %"
    assert {row.get_attribute("data-stage") for row in page.locator("#times dd").all()} == {
        "subwords",
        "model",
        "frame",
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_units_have_colours_of_their_own(open_page, scheme):
    page = open_page(NESTED, color_scheme=scheme)
    wait_for(page, NESTED)
    fills = page.locator(SHOWN).evaluate_all(
        "all => all.map(node => [node.querySelector('.number').textContent,"
        "                        getComputedStyle(node.querySelector('rect')).fill])"
    )
    colours = dict(fills)
    assert len(set(colours.values())) == len(colours) == 3
    assert all(colours[number] == fill for number, fill in fills)


def test_typing(open_page, parser):
    page = open_page()
    text = "will it rain in oslo on sunday"
    page.keyboard.press("/")
    page.keyboard.type(text)
    wait_for(page, text)
    assert drawn(page) == expected(parser(text, nbest=CANDIDATES).best)
    assert underlined(page) == ["rain", "oslo", "on sunday"]
    assert page.evaluate("decodeURIComponent(location.hash)") == f"#text={text}"
    page.keyboard.press("Escape")
    assert page.locator("#result").is_hidden()
    assert (page.input_value("#text"), page.evaluate("location.hash")) == ("", "")


def test_enter_asks_at_once(open_page):
    page = open_page(prepare=install_clock)
    wait_for(page, FIRST)
    stop_clock(page)
    page.fill("#text", "set a timer for 12 minutes")
    page.keyboard.press("Enter")
    wait_for(page, "set a timer for 12 minutes")


def test_offsets_beyond_the_basic_plane(open_page, parser):
    text = "👩‍🚀🇫🇷 play 😀 music by the beatles 😀"
    page = open_page(text)
    wait_for(page, text)
    best = parser(text, nbest=CANDIDATES).best
    assert words(best)
    assert underlined(page) == words(best)


def test_other_candidates(open_page, parser):
    text = "play some jazz by miles davis"
    page = open_page(text)
    wait_for(page, text)
    candidates = parser(text, nbest=CANDIDATES).candidates
    assert page.locator(".candidate .top").all_text_contents() == [candidate.tree for candidate in candidates]
    page.focus("#text")
    for candidate in candidates[1:3]:
        page.keyboard.press("ArrowDown")
        assert drawn(page) == expected(candidate)
        assert underlined(page) == words(candidate)
        rounded = f"{candidate.confidence * 100:.0f} %"
        wanted = "< 1 %" if rounded == "0 %" else rounded
        assert page.locator("#confidence .figure").text_content() == wanted
    page.locator(".candidate input").nth(2).press("ArrowUp")
    assert drawn(page) == expected(candidates[1])


@pytest.mark.parametrize("text", [FIRST, "play some jazz by miles davis", "call mom"])
def test_the_page_and_the_api_agree(open_page, address, text):
    """Same text, same tree, same confidence, same number of passes, however many candidates are asked for."""
    page = open_page(text)
    wait_for(page, text)
    for nbest in (1, 2, CANDIDATES, 10):
        body = json.dumps({"text": text, "nbest": nbest}).encode()
        with urlopen(Request(f"{address}v1/parse", body, {"Content-Type": "application/json"})) as response:
            answer = json.load(response)
        assert page.locator(".candidate .top").first.text_content() == answer["tree"]
        assert page.locator("#confidence .figure").text_content() == f"{answer['confidence'] * 100:.0f} %"
        assert page.locator(".lane").nth(0).locator(".chip").count() == answer["passes"]
        assert page.locator(".words .confidence").all_text_contents() == [
            f"{leaf['confidence'] * 100:.0f} %" for leaf in answer["leaves"]
        ]


def test_copying(open_page, parser):
    page = open_page(NESTED, prepare=install_clock, permissions=["clipboard-read", "clipboard-write"])
    wait_for(page, NESTED)
    stop_clock(page)
    page.locator(".candidate").nth(1).click()
    candidate = parser(NESTED, nbest=CANDIDATES).candidates[1]

    def copied(name):
        page.get_by_role("button", name=name, exact=True).click()
        page.locator("#copy").click()
        page.wait_for_function("() => document.getElementById('copy').textContent === 'Copied'")
        page.clock.run_for(2000)
        assert page.locator("#copy").text_content() == "Copy"  # so that the next time is not taken for this one
        return page.evaluate("navigator.clipboard.readText()")

    assert json.loads(copied("JSON")) == {"text": NESTED, **json.loads(json.dumps(candidate.to_dict()))}
    assert copied("TOP") == candidate.tree
    with redirect_stdout(io.StringIO()) as printed:
        exec(copied("Python"), {})
    tree, _, confidence = printed.getvalue().strip().rpartition(" ")
    assert tree == candidate.tree
    assert 0 < float(confidence) < 1


def test_the_examples(open_page, parser):
    page = open_page()
    wait_for(page, FIRST)
    examples = page.locator("#examples button").all_text_contents()
    page.locator("#examples button").nth(2).click()
    wait_for(page, NESTED)
    results = [parser(text) for text in examples]
    assert all(result.confidence > 0.5 for result in results)
    assert {1, 2, 3} <= {len(result.best.units) for result in results}


def test_a_link_that_is_followed_on_the_page(open_page):
    page = open_page("call mom")
    wait_for(page, "call mom")
    page.evaluate("location.hash = '#text=wake me at 8 am'")
    wait_for(page, "wake me at 8 am")
    assert page.input_value("#text") == "wake me at 8 am"


def test_the_theme_is_remembered(open_page):
    page = open_page(color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.locator("#theme").click()
    light = page.evaluate(colour)
    assert dark != light
    page.reload()
    assert page.evaluate(colour) == light
    assert page.locator("#theme").text_content() == "Dark"


@pytest.mark.parametrize("width", [360, 400])
@pytest.mark.parametrize("text", [FIRST, NESTED, "x" * 3000])
def test_on_a_phone(open_page, parser, text, width):
    page = open_page(text, viewport={"width": width, "height": 740}, has_touch=True, is_mobile=True)
    wait_for(page, text)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    sides = page.locator("button:visible, #text, .candidate, #scrub, .card").evaluate_all(
        "all => all.filter(one => !one.closest('.examples')).map(one => one.getBoundingClientRect())"
        ".filter(box => box.left < 0 || box.right > innerWidth).length"
    )
    assert sides == 0, "nothing to use is outside the screen"
    label = page.locator(".drawing .label").first.bounding_box()
    assert label["height"] >= 10, "a wide tree becomes an outline before it is too small to be read"
    cut = page.locator("#tree").evaluate("tree => tree.scrollWidth > tree.clientWidth")
    assert not cut, "all of the tree is on the screen"
    assert drawn(page) == expected(parser(text, nbest=CANDIDATES).best)


def test_what_assistive_technology_is_told(open_page, parser):
    page = open_page()
    wait_for(page, FIRST)
    assert page.get_by_role("img", name=f"Tree: {parser(FIRST, nbest=CANDIDATES).tree}").count() == 1
    assert page.get_by_label("Your request").input_value() == FIRST
    nameless = page.locator("button, input, [tabindex]").evaluate_all(
        "all => all.filter(one => !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).length"
    )
    assert nameless == 0
    page.keyboard.press("Tab")
    focused = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert re.fullmatch("solid|auto", focused)
