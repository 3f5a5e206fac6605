"""Throws texts at `Parser` and at the reader of TOP text, for as long as it is told to.

    python -m experiments fuzz --model BUNDLE [--minutes 10]

What must hold: a text gives a valid frame that quotes it, the same alone and in a batch, or an error of one line; TOP
text gives a tree that is written and read back as itself, or an error of one line. Nothing else may happen. What
Hypothesis finds it makes small, and the run ends there.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from treepiece import Frame, Parser, TreepieceError, format_brackets, parse_brackets
from treepiece.bundle import BUNDLED
from treepiece.errors import TextError
from treepiece.evaluation.outcomes import is_valid_frame

EXAMPLES = 500  # a round, each with a seed of its own
PIECES = [
    "[IN:A",
    "[SL:B",
    "[IN:",
    "[SL:",
    "]",
    "[",
    "[X",
    "remind",
    "me",
    "to",
    "8am",
    "\u2028",
    "\u00a0",
    "\t",
    "\n",
    "",
]

any_text = st.text(max_size=80) | st.text(st.characters(exclude_categories=()), max_size=30)  # with lone surrogates
words = st.lists(
    st.sampled_from(["call", "mom", "at", "8am", "[IN:A", "]", "🎉", "İ", "\u200d", "ﬀ", "\u0000"]), max_size=12
)
utterances = any_text | words.map(" ".join) | words.map("".join)
bracket_texts = any_text | st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join)


def check_parser(parser: Parser, texts: list[str], nbest: int) -> None:
    """Raise if something happens that must not."""
    answers = parser.try_batch(texts, nbest=nbest)
    for text, answer in zip(texts, answers, strict=True):
        if isinstance(answer, TextError):
            assert "\n" not in str(answer)
            continue
        assert answer == parser(text, nbest=nbest), "alone and in a batch"
        assert str(answer)
        for candidate in answer.candidates:
            assert is_valid_frame(candidate.frame)
            assert all(leaf.text == text[leaf.chars.start : leaf.chars.end] for leaf in candidate.leaves)
            assert 0 <= candidate.confidence <= 1
        json.dumps(answer.to_dict()).encode()


def check_reader(text: str, *, any_label: bool) -> None:
    """Raise if something happens that must not."""
    try:
        tree = parse_brackets(text, any_label=any_label)
        assert parse_brackets(format_brackets(tree, any_label=any_label), any_label=any_label) == tree
        if not any_label:
            frame = Frame.from_brackets(text)
            assert Frame.from_json(json.loads(json.dumps(frame.to_json()))) == frame
    except TreepieceError as error:
        message = str(error)
    else:
        return
    assert "\n" not in message


def rounds(check: Callable[..., None], minutes: float, **strategies: st.SearchStrategy[object]) -> int:
    """Run a check with new seeds until the time is over; return how many examples there were."""
    end = time.monotonic() + minutes * 60
    number = 0
    while time.monotonic() < end:
        options = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        seed(number)(options(given(**strategies)(check)))()
        number += 1
    return number * EXAMPLES


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--model", default=BUNDLED, help="a bundle; by default the one that comes with treepiece")
    parser.add_argument("--minutes", type=float, default=10, help="for each of the two")


def run(args: Namespace) -> None:
    """Fuzz and report."""
    loaded = Parser.load(args.model, threads=1)

    def with_parser(texts: list[str], nbest: int) -> None:
        check_parser(loaded, texts, nbest)

    def with_reader(text: str, any_label: bool) -> None:
        check_reader(text, any_label=any_label)

    texts = st.lists(utterances, min_size=1, max_size=4)
    found = rounds(with_parser, args.minutes, texts=texts, nbest=st.sampled_from([1, 1, 3]))
    print(f"Parser: {found:,} examples, nothing found")
    found = rounds(with_reader, args.minutes, text=bracket_texts, any_label=st.booleans())
    print(f"TOP reader: {found:,} examples, nothing found")
