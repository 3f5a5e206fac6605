"""Lines as bytes, and as texts. Only a line feed ends a line: U+2028 and its like are part of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from treepiece.errors import DataError

LONGEST_TEXT = 1 << 20
"""How many bytes of a line of text are kept: more than any text that can be parsed has."""


def decode_line(raw: bytes, *, is_first: bool = False) -> str:
    r"""Return a line without its end; the first of a file may begin with a byte order mark.

    >>> decode_line(b"one\r\n")
    'one'
    """
    try:
        text = raw.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"byte {error.start + 1} is not UTF-8, got {raw[:40]!r}: save the file as UTF-8") from None
    return text.removesuffix("\n").removesuffix("\r")


def split_lines(read: Callable[[], bytes]) -> Iterator[list[bytes]]:
    """Yield the lines that are complete after each block that `read` returns, until it returns nothing.

    Whoever writes a line and waits for the answer gets it. A line without end does not fill the memory: what is longer
    than any text is cut off.
    """
    rest = b""
    while block := read():
        *lines, rest = (rest + block).split(b"\n")
        rest = rest[:LONGEST_TEXT]
        if lines:
            yield lines
    if rest:
        yield [rest]
