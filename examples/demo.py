"""Cuts a tree into units, then parses a few requests with the model that comes with treepiece.

It needs no PyTorch and downloads nothing. With a folder that `treepiece export` wrote, it parses with that model:

    python examples/demo.py [FOLDER]
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from treepiece import Parser, TokenizerConfig, TreepieceError, TreePieceTokenizer
from treepiece.data.toy import toy_frames
from treepiece.trees.outline import outline

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
    """Train a tree tokenizer on toy rows, and draw a tree that it writes in two units."""
    title("A tree tokenizer")
    frames = list(toy_frames(5000, seed=0))
    tokenizer = TreePieceTokenizer.train((frame.skeleton for frame in frames), TokenizerConfig(merges=150))
    encoded = tokenizer.encode_batch(frame.skeleton for frame in frames)
    nodes = sum(frame.skeleton.n_nodes for frame in frames) / len(frames)
    units = sum(map(len, encoded)) / len(frames)
    print(f"Learned from {len(frames):,} toy trees: {nodes:.2f} nodes a tree, {units:.2f} units a tree.")
    print("The number beside a node is that of the unit that wrote it:\n")
    frame = next(frame for frame, unit_ids in zip(frames, encoded, strict=True) if len(unit_ids) == 2)
    print(f"{frame.utterance}\n{tokenizer.draw(frame.tree, colour=colour)}\n")


def show_parses(parser: Parser, colour: bool) -> None:
    """Draw what a few requests mean."""
    title("A parser that writes units")
    for text in REQUESTS:
        parser(text)  # the first texts open the graphs, which is not what a parse takes
    for text in REQUESTS:
        result = parser(text)
        print(f"{text}\n{result.draw(units=True, colour=colour)}")
        print(f"confidence {result.confidence:.2f}, {sum(result.times.values()):.1f} ms\n")


def show_readings(parser: Parser, colour: bool) -> None:
    """Draw several readings of one request."""
    title("Several readings: nbest=3")
    print(AMBIGUOUS)
    for reading in parser(AMBIGUOUS, nbest=3).candidates:
        print(f"{outline(reading.frame.tree, colour=colour)}\nscore {reading.score:.2f}")
    print()


def show_refusal(parser: Parser) -> None:
    """Ask for something that the model has no intent for: it answers all the same, unless it is told not to guess."""
    title("What it does not know")
    print(OUTSIDE)
    for least in (0.0, LEAST):
        result = parser(OUTSIDE, min_confidence=least)
        print(f"min_confidence={least}: {result} (confidence {result.confidence:.2f})")
    print()


def main() -> None:
    """Run the demo; without a model, say what is missing after the part that needs none."""
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
    show_readings(parser, colour)
    show_refusal(parser)
    command = Path(sys.executable).with_name("treepiece")
    shown = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command.name
    print(f'Your turn: {shown} parse --model {model} "your text"')


if __name__ == "__main__":
    main()
