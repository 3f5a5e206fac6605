"""`python -m experiments NAME [options]`."""

from __future__ import annotations

import importlib
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence

from treepiece.cli.console import note
from treepiece.errors import TreepieceError

COMMANDS = {
    "tokenizer": "time and memory of the tree tokenizer against SentencePiece",
    "vocabulary": "units per tree and trees without an encoding, by the way the vocabulary is trained",
    "passes": "decoder passes of the three parsers on gold trees (Figure 3 of the paper)",
    "latency": "milliseconds per parse: three parsers, ONNX Runtime and PyTorch, float and int8",
    "process": "start-up time, memory and throughput of a bundle",
    "server": "throughput, latency and errors of `treepiece serve`, also under overload",
    "robustness": "accuracy on noised text, and what a parser makes of requests out of its scope",
    "fuzz": "random and hostile texts against the parser and the reader of TOP text",
    "toy": "accuracy of the three parsers on the toy grammar",
    "training-speed": "utterances per second in training",
    "reproduce": "the paper's tables and figures, and more: train, evaluate, write docs/results.md",
    "report": "docs/results.md from the published results, in seconds",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment that a command line names, and return the exit code.

    0: done; 1: parts failed or wait for others; 2: it could not begin; 130: interrupted.
    """
    name, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name not in COMMANDS:
        overview = "\n".join(f"  {name:16}{what}" for name, what in COMMANDS.items())
        parser = ArgumentParser("python -m experiments", formatter_class=RawDescriptionHelpFormatter, epilog=overview)
        parser.add_argument("name", choices=COMMANDS, metavar="NAME", help="one of those below; NAME --help tells more")
        parser.parse_args([name])
    try:
        module = importlib.import_module(f"experiments.{name.replace('-', '_')}")
        parser = ArgumentParser(
            f"python -m experiments {name}", description=module.__doc__, formatter_class=RawDescriptionHelpFormatter
        )
        module.add_options(parser)
        code: int | None = module.run(parser.parse_args(rest))
        return code or 0
    except TreepieceError as error:
        note(f"error: {error}")
        return 2
    except ModuleNotFoundError as error:
        note(f"error: {error.name} is not installed: pip install '.[bench,train,serve,test]'")
        return 2
    except KeyboardInterrupt:
        note("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
