"""An extension for mkdocstrings: it turns the examples of docstrings into code blocks.

mkdocstrings reads docstrings as Markdown, where `>>>` is a quotation inside two others.
"""

from __future__ import annotations

import re

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", flags=re.MULTILINE | re.DOTALL)


class Examples(griffe.Extension):
    """Puts a fence around each example of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change the docstring of a loaded object."""
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)


def fence(text: str) -> str:
    """Return a docstring with a fence around each example; an example ends at a blank line.

    >>> fence(">>> one()").split()
    ['```pycon', '>>>', 'one()', '```']
    """
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
