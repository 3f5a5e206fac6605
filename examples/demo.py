"""Splits a tree into units, then parses a few requests with the bundled model.

No PyTorch is needed and nothing is downloaded. Give a folder that `treepiece export` wrote to use that model instead:

    python examples/demo.py [FOLDER]
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from treepiece import Parser, TokenizerConfig, TreepieceError, TreePieceTokenizer
from treepiece.data.toy import toy_frames
from treepiece.trees.drawing import outline

REQUESTS = (
    "remind me to text grace tonight",
    "will it rain in oslo on sunday",
    "how long is the drive to the beach if i leave at 5",
)
AMBIGUOUS = "play some jazz by miles davis"
OUTSIDE = "who was the first woman in space"
LEAST = 0.8


def title(text: str) -> None:
    """Print a heading."""
    print(f"{text}\n{'-' * len(text)}")


def show_units(colour: bool) -> None:
    """Train a tree tokenizer on toy rows, and draw a tree that it encodes as two units."""
    title("A tree tokenizer")
    frames = list(toy_frames(5000, seed=0))
    tokenizer = TreePieceTokenizer.train((frame.skeleton for frame in frames), TokenizerConfig(merges=150))
    encoded = tokenizer.encode_batch(frame.skeleton for frame in frames)
    nodes = sum(frame.skeleton.n_nodes for frame in frames) / len(frames)
    units = sum(map(len, encoded)) / len(frames)
    print(f"Learned from {len(frames):,} toy trees: {nodes:.2f} nodes a tree, {units:.2f} units a tree.")
    print("The number beside a node is that of its unit:\n")
    frame = next(frame for frame, unit_ids in zip(frames, encoded, strict=True) if len(unit_ids) == 2)
    print(f"{frame.utterance}\n{tokenizer.draw(frame.tree, colour=colour)}\n")


def show_parses(parser: Parser, colour: bool) -> None:
    """Draw the parses of a few requests."""
    title("A parser that predicts units")
    for text in REQUESTS:
        parser(text)  # loads the graphs, so that the times below are those of parsing alone
    for text in REQUESTS:
        result = parser(text)
        print(f"{text}\n{result.draw(units=True, colour=colour)}")
        print(f"confidence {result.confidence:.2f}, {sum(result.times.values()):.1f} ms\n")


def show_candidates(parser: Parser, colour: bool) -> None:
    """Draw several candidates for one request."""
    title("Several candidates: nbest=3")
    print(AMBIGUOUS)
    for candidate in parser(AMBIGUOUS, nbest=3).candidates:
        print(f"{outline(candidate.frame.tree, colour=colour)}\nscore {candidate.score:.2f}")
    print()


def show_refusal(parser: Parser) -> None:
    """Parse a request outside of the model's intents: with a minimum confidence, the parser refuses it."""
    title("What it does not know")
    print(OUTSIDE)
    for least in (0.0, LEAST):
        result = parser(OUTSIDE, min_confidence=least)
        print(f"min_confidence={least}: {result} (confidence {result.confidence:.2f})")
    print()


def main() -> None:
    """Run the demo; if the model cannot be loaded, say so after the part that needs none."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot draw lines shows question marks
    colour = sys.stdout.isatty()
    model = sys.argv[1] if len(sys.argv) > 1 else "bundled"
    show_units(colour)
    try:
        parser = Parser.load(model)
    except TreepieceError as error:
        sys.exit(f"error: {error}")
    show_parses(parser, colour)
    show_candidates(parser, colour)
    show_refusal(parser)
    command = Path(sys.executable).with_name("treepiece")
    shown = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command.name
    print(f'Your turn: {shown} parse --model {model} "your text"')


if __name__ == "__main__":
    main()
