"""The decoding pass by pass: counted as the library counts, and drawn as it was written."""

import pytest
from page_tools import CANDIDATES, NESTED, drawn, expected, install_clock, stop_clock, wait_for

from treepiece.data.toy import toy_frames
from treepiece.decoding.linearization import TokenVocabulary
from treepiece.runtime.result import Candidate
from treepiece.trees.frame import Frame

RERANKED = "play some jazz by miles davis"
TEXTS = [RERANKED, "who was the first woman in space", "will it rain in oslo on sunday", NESTED]
ODD = [
    "[IN:STOP stop ]",
    "[IN:A [SL:B ] ]",  # a leaf that points at nothing
    "[IN:A [SL:B [IN:C ] ] [SL:D x ] ]",
    "[IN:A [SL:B [IN:C [SL:D a b c ] [SL:E d ] ] ] ]",
]
WRITE = """async candidates => {
    const {nodesOf} = await import("/page/candidate.js");
    const {tokensOf} = await import("/page/steps.js");
    return candidates.map(candidate => tokensOf(nodesOf(candidate), candidate).map(token => [token.kind, token.text]));
}"""


def written(frame):
    """What the autoregressive parser writes for a frame, as the page tells it."""
    labels = sorted({node.label for node in frame.skeleton.nodes()})
    vocabulary = TokenVocabulary(labels)
    tokens = []
    is_first = True
    for token in vocabulary.write(frame.skeleton, frame.spans):
        if token < vocabulary.close:
            tokens.append(["open", labels[token]])
        elif token == vocabulary.close:
            tokens.append(["close", "]"])
        else:
            word = frame.words[token - vocabulary.first_pointer]
            tokens.append(["first" if is_first else "last", word])
            is_first = not is_first
    return tokens


def test_tokens_are_those_of_the_library(open_page):
    frames = [Frame.from_brackets(text) for text in ODD]
    frames += [Frame.from_brackets(frame.to_brackets()) for frame in toy_frames(300)]
    candidates = [Candidate(frame, 1.0, (1.0,) * len(frame.leaves), 1.0, (), (), 1).to_dict() for frame in frames]
    found = open_page().evaluate(WRITE, candidates)
    assert found == [written(frame) for frame in frames]


@pytest.mark.parametrize("text", TEXTS)
def test_passes_of_both(open_page, parser, text):
    page = open_page(text)
    wait_for(page, text)
    for place, candidate in enumerate(parser(text, nbest=CANDIDATES).candidates):
        page.locator(".candidate input").nth(place).check()
        own, other = (page.locator(".lane").nth(lane).locator(".chip").count() for lane in (0, 1))
        assert (own, other) == (candidate.passes, len(written(candidate.frame)))
        passes = "1 pass" if own == 1 else f"{own} passes"
        assert page.locator("#replay-title").text_content() == f"{passes} instead of {other}"


def test_pass_by_pass(open_page, parser):
    page = open_page(NESTED)
    wait_for(page, NESTED)
    best = parser(NESTED, nbest=CANDIDATES).best
    marks = page.locator("#utterance mark:not(.pending)")
    holes = page.locator(".hole:not(.pending)")
    page.locator("#scrub").fill("0")
    assert (drawn(page), marks.count(), holes.count()) == ([], 0, 0)
    page.locator("#replay-title").click()  # so that the keys are the page's
    for done in (1, 2, 3):
        page.keyboard.press("ArrowRight")
        assert drawn(page) == [node for node in expected(best) if int(node[1]) <= done]
        assert (marks.count(), holes.count()) == (0, int(done < 3))
    assert "TreePiece: unit 3" in page.locator("#said").text_content()
    page.locator("#forward").click()
    assert (drawn(page), marks.count()) == (expected(best), len(best.leaves))
    assert page.locator("#pass").text_content() == "pass 4 of 26"
    assert page.locator(".lane").nth(0).locator(".count").text_content() == "done after 4 passes"
    assert page.locator(".lane").nth(1).locator(".chip:not(.pending)").count() == 4
    page.locator("#back").click()
    assert marks.count() == 0


def test_reranking_is_a_pass(open_page, parser):
    page = open_page(RERANKED)
    wait_for(page, RERANKED)
    best = parser(RERANKED).best
    assert best.passes == len(best.units) + 2  # one for the words, and one for reranking
    page.locator("#scrub").fill(str(best.passes - 1))
    assert page.locator(".lane").nth(0).locator(".count").text_content() == f"{best.passes - 1} of {best.passes} passes"
    page.locator("#forward").click()
    assert "reranked with the other candidates" in page.locator("#said").text_content()
    assert page.locator(".lane").nth(0).locator(".count").text_content() == f"done after {best.passes} passes"


def test_playing(open_page):
    page = open_page(NESTED, prepare=install_clock)
    wait_for(page, NESTED)
    assert page.locator("#pass").text_content() == "pass 26 of 26"
    stop_clock(page)
    page.locator("#tree").blur()
    page.keyboard.press("p")
    assert (page.locator("#pass").text_content(), page.locator("#play").text_content()) == ("pass 0 of 26", "Pause")
    page.clock.run_for(1300)
    assert page.locator("#pass").text_content() == "pass 3 of 26"
    page.locator("#play").click()
    page.clock.run_for(5000)
    assert page.locator("#pass").text_content() == "pass 3 of 26"
    page.locator("#play").click()
    page.clock.run_for(30_000)
    assert (page.locator("#pass").text_content(), page.locator("#play").text_content()) == ("pass 26 of 26", "Play")


def test_letters_work_wherever_nothing_is_typed(open_page):
    page = open_page(NESTED, prepare=install_clock)
    wait_for(page, NESTED)
    stop_clock(page)
    for control in (page.locator(".candidate input").nth(1), page.locator("#scrub")):
        control.click()
        page.keyboard.press("Shift+P")
        assert page.locator("#play").text_content() == "Pause"
        page.keyboard.press("p")
        assert page.locator("#play").text_content() == "Play"
    page.keyboard.press("/")
    page.keyboard.press("p")
    assert page.input_value("#text") == "p"


def test_typing_ends_the_replay(open_page):
    page = open_page(NESTED)
    wait_for(page, NESTED)
    page.locator("#play").click()
    page.fill("#text", "call mom")
    wait_for(page, "call mom")
    assert page.locator("#play").text_content() == "Play"
    assert page.locator(".drawing .pending").count() == 0


def test_less_motion(open_page):
    page = open_page(NESTED, reduced_motion="reduce")
    wait_for(page, NESTED)
    durations = page.locator(".drawing > *, .chip, mark").evaluate_all(
        "all => all.map(one => getComputedStyle(one).transitionDuration)"
    )
    assert set(durations) == {"0s"}
