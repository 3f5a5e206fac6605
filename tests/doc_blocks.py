"""The code blocks of a page, and what comments before them say about running them.

    <!-- docs: not run: REASON -->          the block is not run
    <!-- docs: any output: REASON -->       the output that it shows is not compared
    <!-- docs: with: OLD => NEW -->         in the test, NEW stands in the place of OLD: fewer rows, a smaller encoder
    <!-- docs: first: COMMAND -->           what a reader would have: run before the block, in the same folder

A comment must stand right before its block. A block with a title (```python title="rows.py") is a file.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "deploy" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

RUN = {"pycon", "console", "sh", "python"}
"""The languages that are run."""
_REASONED = {"not run", "any output"}
_BLOCK = re.compile(
    r"^(?P<notes>(?:<!-- docs: [^\n]* -->\n)*)(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$",
    flags=re.MULTILINE | re.DOTALL,
)
_NOTE = re.compile(r"<!-- docs: ([a-z ]+): (.*) -->")
_TITLE = re.compile(r'title="([\w.-]+)"')


class BlockError(Exception):
    """A block that would be left out, or a comment that means nothing."""


@dataclass
class Block:
    """A block of code: where it is, what it is, and what comments say of it."""

    page: str
    line: int
    language: str
    title: str | None
    code: str
    reasons: dict[str, str] = field(default_factory=dict)
    first: list[str] = field(default_factory=list)

    @property
    def place(self):
        return f"{self.page}, line {self.line}"

    @property
    def is_run(self):
        return "not run" not in self.reasons


def read_blocks(text, page):
    """Return all blocks of a page; raise where one is neither run, nor a file, nor left out for a reason."""
    blocks = [_read(found, text, page) for found in _BLOCK.finditer(text)]
    if text.count("```") != 2 * len(blocks) or "~~~" in text:
        raise BlockError(f"{page}: a code block is not of the form ```language ... ```")
    n_notes = sum(len(_NOTE.findall(found["notes"])) for found in _BLOCK.finditer(text))
    if text.count("<!-- docs:") != n_notes:
        raise BlockError(f"{page}: a `<!-- docs: ... -->` does not stand right before a code block")
    return blocks


def _read(found, text, page):
    language, _, rest = found["info"].strip().partition(" ")
    title = _TITLE.search(rest)
    code = re.sub(f"^{found['indent']}", "", found["code"], flags=re.MULTILINE)
    line = text[: found.start("info")].count("\n") + 1
    block = Block(page, line, language, title[1] if title else None, code)
    for kind, value in _NOTE.findall(found["notes"]):
        _note(block, kind, value.strip())
    if block.is_run and not block.title and language not in RUN:
        raise BlockError(
            f"{block.place}: nothing runs {language or 'a block without a language'}: give it a title, "
            "or say with `<!-- docs: not run: REASON -->` why not"
        )
    return block


def _note(block, kind, value):
    if kind in _REASONED and value:
        block.reasons[kind] = value
    elif kind == "first" and value:
        block.first.append(value)
    elif kind == "with" and " => " in value:
        old, new = value.split(" => ")
        if old not in block.code:
            raise BlockError(f"{block.place}: {old!r} is not in the block")
        block.code = block.code.replace(old, new)
    else:
        raise BlockError(f"{block.place}: not understood: `docs: {kind}: {value}`")
