"""Parses rows whose answer is known, with PyTorch or with a bundle's graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from treepiece.bundle import TRAINING, WEIGHTS, read_bundle
from treepiece.cli.extras import needs_training
from treepiece.data.rows import Row
from treepiece.evaluation.comparison import compare
from treepiece.evaluation.outcomes import Outcome
from treepiece.options import one_of
from treepiece.runtime.graphs import Precision, as_ids, precisions_in
from treepiece.runtime.parser import Parser
from treepiece.shipped import find_graphs
from treepiece.training.examples import Example, make_examples

OnRows = Callable[[int], None]


class Predictor(Protocol):
    """A trained parser."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is known of its training."""

    def examples(self, rows: Sequence[Row]) -> tuple[list[Example], list[str]]:
        """Return rows as the parser reads them, and why it cannot read others."""

    def predict(self, examples: Sequence[Example], beam: int, on_rows: OnRows) -> list[Outcome]:
        """Return the outcome of each example."""


def load_predictor(model: str | Path, precision: str | None) -> Predictor:
    """Return a parser: on graphs if a precision is named or the folder has nothing else, else in PyTorch."""
    wanted = one_of("--precision", precision, Precision) if precision is not None else None
    folder = find_graphs(model)
    bundle = read_bundle(folder, check=False)
    if wanted is not None or (WEIGHTS not in bundle.files and precisions_in(bundle)):
        return _Graphs(Parser.load(folder, precision=wanted))
    with needs_training("evaluate"):
        from treepiece.models.trained import load_model
    return _Torch(load_model(folder))


class _Graphs:
    """A parser on ONNX Runtime."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.facts = parser.bundle.read_json(TRAINING)

    def examples(self, rows: Sequence[Row]) -> tuple[list[Example], list[str]]:
        return make_examples(rows, self.parser.subwords)

    def predict(self, examples: Sequence[Example], beam: int, on_rows: OnRows) -> list[Outcome]:
        outcomes = []
        for example in examples:
            best = self.parser.model.parse(as_ids([example.subwords.ids]), beam=beam)[0][0]
            chars = [example.subwords.chars(span) for span in best.spans]
            outcomes.append(
                compare(
                    example.frame,
                    best.skeleton,
                    chars,
                    domain=example.domain,
                    passes=best.passes,
                    line=example.line,
                )
            )
            on_rows(len(outcomes))
        return outcomes


class _Torch:
    """A parser in PyTorch."""

    def __init__(self, trained: Any) -> None:  # noqa: ANN401  # the type would load PyTorch
        self.trained = trained
        self.facts = trained.facts

    def examples(self, rows: Sequence[Row]) -> tuple[list[Example], list[str]]:
        return make_examples(rows, self.trained.subwords)

    def predict(self, examples: Sequence[Example], beam: int, on_rows: OnRows) -> list[Outcome]:
        from treepiece.training.prediction import predict

        return predict(self.trained.model, examples, beam=beam, on_rows=on_rows)
