"""For the reference of the site: examples in docstrings become blocks of code.

mkdocstrings reads docstrings as Markdown, where `>>>` is a quotation of a quotation of a quotation.
"""

from __future__ import annotations

import re

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", flags=re.MULTILINE | re.DOTALL)


class Examples(griffe.Extension):
    """Puts fences around the examples of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change the docstring of an object that was read."""
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)


def fence(text: str) -> str:
    """Return a docstring with a fence around each example, which ends where a blank line comes.

    >>> fence(">>> one()").split()
    ['```pycon', '>>>', 'one()', '```']
    """
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
