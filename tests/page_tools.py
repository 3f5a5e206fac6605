"""What the tests of the page read from it, and from the library."""

CANDIDATES = 4
"""How many the page asks for."""
FIRST = "remind me to text grace tonight"
NESTED = "find events near my parents' house this weekend"
SHOWN = ".drawing .node:not(.pending)"
"""The nodes that are drawn."""


def drawn(page):
    """Label and number of the unit of each node that is drawn."""
    return page.locator(SHOWN).evaluate_all(
        "nodes => nodes.map(node => [node.dataset.label, node.querySelector('.number').textContent])"
    )


def expected(candidate):
    """The same of what the library says."""
    labels = [node.label for node in candidate.frame.skeleton.nodes()]
    return [[label, str(place + 1)] for label, place in zip(labels, candidate.unit_places, strict=True)]


def wait_for(page, text):
    """Wait until the page shows the answer of a text."""
    page.wait_for_function("text => document.getElementById('utterance').textContent === text", arg=text)


def stop_clock(page):
    """Stop the clock of a page that was opened with `prepare=install_clock`: from here on no pause ends by itself."""
    page.clock.pause_at("2100-01-01")


def install_clock(page):
    """Make the clock of a page one that can be stopped: what it shows for a while is gone before a slow test looks."""
    page.clock.install()


def underlined(page):
    return page.locator("#utterance mark").all_text_contents()


def words(candidate):
    return [leaf.text for leaf in candidate.leaves]
