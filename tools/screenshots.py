"""Takes the screenshots of the playground for the README and the docs, with the bundled model.

    python -m tools.screenshots [FOLDER]

It needs the extras `serve` and `dev`, a Chromium (on the path, or where TREEPIECE_CHROMIUM says) and Pillow.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from treepiece import Parser
from treepiece.serving.app import create_app
from treepiece.serving.server import listen, running
from treepiece.serving.settings import Settings

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
SIZE = (1280, 1375)
LARGEST = 200_000  # bytes of a picture
TEXT = "remind me to text grace tonight"
PICTURES = {"playground.png": "light", "playground-dark.png": "dark"}
"""The theme of each picture; the README shows the one that matches the theme of the reader."""
PROGRAMS = (os.environ.get("TREEPIECE_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")


@contextmanager
def served() -> Iterator[str]:
    """Serve the model in a thread; give the address."""
    settings = Settings()
    with listen("127.0.0.1", 0, settings) as listener, running(create_app(Parser.bundled(), settings), listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def take(browser: Browser, address: str, theme: str) -> bytes:
    """Return a picture of the page as PNG."""
    width, height = SIZE
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.goto(f"{address}#text={quote(TEXT)}")
    page.locator(".drawing").wait_for()
    for _ in range(3):  # the first answers of a server are slower than those after them
        page.locator("#text").press("Enter")
        page.wait_for_timeout(200)
    page.locator("#text").blur()
    picture = page.screenshot()
    page.close()
    return picture


def shrink(picture: bytes) -> bytes:
    """Return a picture in 256 colours, which is all that the page has."""
    shrunk = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
        shrunk, "PNG", optimize=True
    )
    return shrunk.getvalue()


def main() -> None:
    """Take all pictures."""
    program = next((found for name in PROGRAMS if name and (found := shutil.which(name))), None)
    if program is None:
        sys.exit("there is no Chromium: install it, or set TREEPIECE_CHROMIUM to its program")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for name, theme in PICTURES.items():
            picture = shrink(take(browser, address, theme))
            if len(picture) > LARGEST:
                sys.exit(f"{name} has {len(picture):,} bytes, which is more than {LARGEST:,}")
            (folder / name).write_bytes(picture)
            print(f"{folder / name}: {len(picture):,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
