"""The HTML report: complete, and safe whatever the rows are."""

import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from strategies import top_words

from treepiece.checking.checker import CheckConfig, check_rows
from treepiece.checking.findings import CheckReport, FindingKind
from treepiece.checking.html_report import html_report

HOSTILE = "<script>alert(1)</script>"


def body(page):
    """Return the body of a page, which is well-formed XML too."""
    return ET.fromstring(re.search(r"<body>.*</body>", page, flags=re.DOTALL)[0])


def test_a_report_shows_utterances_and_trees():
    rows = [("play it", "[IN:A play [SL:S it ] ]"), ("play it", "[IN:B play it ]")]
    page = html_report(check_rows(rows), "Check of my rows")
    texts = [text.strip() for text in body(page).itertext()]
    for wanted in ("Check of my rows", "2 training rows.", "play it", "IN:A", "SL:S", "IN:B", "the data, line 1"):
        assert wanted in texts
    assert page.count("<svg") == page.count("</svg>") >= 4


def test_nothing_is_run_and_nothing_is_fetched():
    rows = [(f"{HOSTILE} it?", f"[IN:A {HOSTILE} [SL:S it ? ] ]"), (f"{HOSTILE} it", f"[IN:{HOSTILE} {HOSTILE} it ]")]
    report = check_rows(rows, config=CheckConfig(examples=9))
    page = html_report(report, HOSTILE)
    assert report.counts[FindingKind.RARE_LABEL] == 3
    assert "<script" not in page.lower()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not re.findall(r"(?:src|href|url|@import)\s*[=(]?\s*[\"']?(?:https?:|//|data:)", page)
    assert "default-src 'none'" in page
    assert {element.tag.rpartition("}")[2] for element in body(page).iter()} <= {
        *("body", "h1", "h2", "p", "table", "tr", "td", "a", "section", "span", "article", "div", "strong"),
        *("figure", "figcaption", "svg", "title", "line", "rect", "text"),
    }


@given(st.lists(top_words, min_size=1, max_size=4))
def test_any_text_gives_a_page_that_can_be_written(words):
    text = " ".join(words)
    rows = [(text, f"[IN:A {text} ]"), (text, f"[IN:B {text} ]")]
    page = html_report(check_rows(rows), text)
    assert "\x1b" not in page
    assert page.encode().decode() == page


def test_a_report_without_findings():
    page = html_report(CheckReport(3, 4, dict.fromkeys(FindingKind, 0), {}), "nothing")
    assert "3 training rows, 4 rows of eval." in page
    assert "<section" not in page
