"""A real Chromium that looks at a real server."""

import os
import shutil
from urllib.parse import urlsplit

import pytest
from serving_tools import LONGEST, PATIENT, served

OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium():
    """The browser's program; TREEPIECE_CHROMIUM names one that is not on the path."""
    names = (os.environ.get("TREEPIECE_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


# Not for the whole session: while Playwright is open, a test of this process could not use `asyncio.run`.
@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install 'treepiece[dev]'"
    )
    program = chromium()
    if program is None:
        pytest.skip("there is no Chromium: install it, or set TREEPIECE_CHROMIUM to its program")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS, timeout=3000 * LONGEST)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def parser():
    """The model that comes with treepiece."""
    pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'treepiece[serve]'")
    from treepiece import Parser

    return Parser.bundled(threads=2)


@pytest.fixture(scope="session")
def address(parser):
    """Where that model is served."""
    from treepiece.serving.app import create_app
    from treepiece.serving.settings import Settings

    with served(create_app(parser, Settings(**PATIENT))) as port:
        yield f"http://127.0.0.1:{port}/"


class Watched:
    """What a page did: whom it asked, and what it complained of."""

    def __init__(self, page):
        self.hosts = set()
        self.complaints = []
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))

    def _on_console(self, message):
        # A refused request is told here too, whatever the page makes of it; what breaks the policy always is.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.complaints.append(message.text)


@pytest.fixture
def open_page(browser, address):
    """Open the page, `text` in its address; in the end it must have asked its own server only, and not erred."""
    opened = []

    def open_page(text=None, *, at=address, prepare=None, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(1000 * LONGEST)
        page = context.new_page()
        opened.append((context, Watched(page), urlsplit(at).netloc))
        if prepare is not None:
            prepare(page)
        page.goto(at if text is None else f"{at}#text={text}")
        return page

    yield open_page
    for context, watched, host in opened:
        context.close()
        assert watched.hosts == {host}
        assert watched.complaints == []
