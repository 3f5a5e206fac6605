"""What the page says of a text that is not understood, and of one whose spelling was corrected."""

import re

from page_tools import FIRST, wait_for

from treepiece.runtime.result import Result

HELLO = "hello"


def least(page, value):
    page.locator("#threshold").evaluate(
        "(range, value) => { range.value = value; range.dispatchEvent(new Event('input')) }", value
    )


def test_a_text_is_understood_from_a_confidence_on(open_page, parser):
    page = open_page(FIRST)
    wait_for(page, FIRST)
    confidence = 100 * parser(FIRST).confidence
    verdict, result = page.locator("#verdict"), page.locator("#result")
    for value in (0, 5 * int(confidence // 5), min(100, 5 * int(confidence // 5) + 5), 0):
        least(page, value)
        assert page.locator("#least").text_content() == f"{value} %"
        assert verdict.is_visible() == (confidence < value)
        assert ("not-understood" in result.get_attribute("class")) == (confidence < value)


def test_the_page_says_why_a_text_is_not_understood(open_page):
    page = open_page(FIRST)
    wait_for(page, FIRST)
    said = page.evaluate(
        """async () => {
            const {showVerdict} = await import("/page/verdict.js");
            const say = (answer, confidence) => {
                const [target, around] = [document.createElement("p"), document.createElement("div")];
                showVerdict(target, around, answer, confidence, 0.5);
                return target.hidden ? null : target.textContent;
            };
            return [
                say({in_scope: 0.02, several: 0.0}, 0.1),
                say({in_scope: 0.98, several: 0.9}, 0.1),
                say({in_scope: null, several: null}, 0.1),
                say({in_scope: 0.98, several: 0.1}, 0.5),
            ];
        }"""
    )
    assert re.fullmatch(r"Not understood\. 10 % is less than 50 %\. The model was not trained for .*", said[0])
    assert "several requests in one" in said[1]
    assert "the nearest tree" in said[2]
    assert said[3] is None


def test_corrections_are_shown(open_page, parser):
    text = "remidn me to text grace tonigth"
    page = open_page(text)
    wait_for(page, text)
    found: Result = parser(text)
    shown = page.locator("#corrections")
    assert shown.is_visible() == bool(found.corrections)
    assert [found.text_content() for found in shown.locator("ins").all()] == [one.read for one in found.corrections]
