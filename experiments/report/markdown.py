"""Tables and numbers in Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

NONE = "none"
"""What stands in a table where there is no figure."""
_WIDTH = 120
_AS_IT_IS = ("|", "`" * 3, "!", "#")
"""What tables, code, pictures and titles begin with."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column is text and whose others are numbers.

    >>> print(table(["", "EM"], [["TreePiece", "86.78"]]))
    |  | EM |
    |---|---:|
    | TreePiece | 86.78 |
    """
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def spread(values: Sequence[float], digits: int = 2, *, scale: float = 1.0) -> str:
    """Return the mean of values, and their range where there are several.

    >>> spread([0.8433], scale=100), spread([1, 2, 6], 1), spread([])
    ('84.33', '3.0 (1.0 to 6.0)', 'none')
    """
    if not values:
        return NONE
    scaled = [scale * value for value in values]
    mean = f"{sum(scaled) / len(scaled):,.{digits}f}"
    if len(scaled) == 1:
        return mean
    return f"{mean} ({min(scaled):,.{digits}f} to {max(scaled):,.{digits}f})"


def percent(values: Sequence[float], digits: int = 2) -> str:
    """Return shares in percent.

    >>> percent([0.5])
    '50.00'
    """
    return spread(values, digits, scale=100)


def number(value: float | None, digits: int = 2) -> str:
    """Return a number, or a dash if there is none.

    >>> number(1234.5, 1), number(None)
    ('1,234.5', 'none')
    """
    return NONE if value is None else f"{value:,.{digits}f}"


def p_value(value: float) -> str:
    """Return a p-value with as many digits as mean anything.

    >>> p_value(0.04321), p_value(1e-9)
    ('0.043', 'below 0.0001')
    """
    return "below 0.0001" if value < 1e-4 else f"{value:.2g}"


def listed(items: Sequence[object]) -> str:
    """Return items as people list them.

    >>> listed([0, 1, 2])
    '0, 1 and 2'
    """
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}" if first else last


def section(title: str, *paragraphs: str) -> str:
    """Return a section of a page; empty paragraphs are left out."""
    return "\n\n".join([f"## {title}", *(wrap(text) for text in paragraphs if text)])


def wrap(text: str) -> str:
    r"""Return paragraphs and lists in lines of equal length, whatever was put into them.

    >>> wrap("One\nparagraph.\n\n- one item\n- another\n  item")
    'One paragraph.\n\n- one item\n- another item'
    """
    return "\n\n".join(block if block.startswith(_AS_IT_IS) else _fill(block) for block in text.strip().split("\n\n"))


def _fill(block: str) -> str:
    items = re.split(r"\n(?=- )", block)
    return "\n".join(
        textwrap.fill(
            " ".join(item.split()),
            _WIDTH,
            subsequent_indent="  " if item.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item in items
    )
