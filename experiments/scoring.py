"""Scores of a parser on rows whose answer is known, how far its confidences can be trusted, and how long it takes.

Texts of rows stay out of what is published: they are TOPv2's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from experiments.parts import Json
from experiments.timing import summarise, time_systems
from treepiece.bundle import TRAINING
from treepiece.cli.console import ProgressBars
from treepiece.data.examples import Example, make_examples, outcome_of
from treepiece.data.fingerprints import skeleton_digest
from treepiece.data.rows import Row
from treepiece.decoding.types import Hypothesis, Temperatures
from treepiece.evaluation.calibration import expected_calibration_error
from treepiece.evaluation.outcomes import Outcome
from treepiece.evaluation.scores import score
from treepiece.runtime.cores import count_cores
from treepiece.runtime.parser import Parser
from treepiece.runtime.sessions import as_ids
from treepiece.trees.node import Node

if TYPE_CHECKING:
    from treepiece.models.baselines import AutoregressiveModel
    from treepiece.models.trained import TrainedModel

EXACT, SKELETON, WRONG, NOT_PARSED = "=s.-"
"""What became of a row, in one character: all rows of a split are one text, for paired tests between parsers."""
NBEST = 5
N_TIMED = 200
ROUNDS = 3
N_BINS = 15

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def score_rows(parser: Parser, rows: Sequence[Row], title: str, *, nbest: int = 1) -> Json:
    """Return the scores of a parser on rows, what became of each row, and how well its confidences are calibrated.

    `in_beam` is the share of rows for which one of the `nbest` best candidates is right.
    """
    examples, left_out = make_examples(rows, parser.subwords)
    beams = _parse(parser, examples, title, nbest)
    outcomes = [outcome_of(example, best) for example, (best, *_) in zip(examples, beams, strict=True)]
    in_beam = [
        outcome.is_exact or any(outcome_of(example, other).is_exact for other in others)
        for example, outcome, (_, *others) in zip(examples, outcomes, beams, strict=True)
    ]
    best = [best for best, *_ in beams]
    return {
        **scores_to_json(outcomes, _seen(parser, outcomes)),
        "unparsable": len(left_out),
        "in_beam": float(np.mean(in_beam)),
        "row_outcomes": _write_outcomes(rows, examples, outcomes),
        "calibration": calibration(examples, best, parser.decoding.temperatures),
    }


def _parse(parser: Parser, examples: Sequence[Example], title: str, nbest: int) -> list[list[Hypothesis]]:
    """Return the hypotheses for each utterance, the best first; each is parsed alone, as a user's would be."""
    beams: list[list[Hypothesis]] = []
    threads = ThreadPoolExecutor(count_cores())
    try:
        with ProgressBars("rows") as bars:
            rows = ([example.subwords.ids] for example in examples)
            for (found,) in threads.map(lambda ids: parser.model.parse(as_ids(ids), nbest=nbest), rows):
                beams.append(found)
                bars.update(title, len(beams), len(examples))
    finally:
        threads.shutdown(cancel_futures=True)  # Ctrl-C does not wait for all the rows that are left
    return beams


def scores_to_json(outcomes: Iterable[Outcome], seen: Collection[Node] | None = None) -> Json:
    """Return the scores of outcomes without the confusions, each of which has an utterance as its example."""
    scores = score(outcomes, seen).to_json()
    del scores["confusions"]
    return scores


def _seen(parser: Parser, outcomes: Iterable[Outcome]) -> set[Node]:
    """Return those of the gold skeletons that the model had in training."""
    known = set(parser.bundle.read_json(TRAINING).get("skeletons", ()))
    return {outcome.gold.skeleton for outcome in outcomes if skeleton_digest(outcome.gold.skeleton) in known}


def _write_outcomes(rows: Sequence[Row], examples: Sequence[Example], outcomes: Sequence[Outcome]) -> str:
    """Return one character a row: two parsers can be compared row by row, even if one could not read some."""
    marks = {
        id(example.frame): EXACT if outcome.is_exact else SKELETON if outcome.is_skeleton else WRONG
        for example, outcome in zip(examples, outcomes, strict=True)
    }
    return "".join(marks.get(id(row.frame), NOT_PARSED) for row in rows)


def calibration(examples: Sequence[Example], best: Sequence[Hypothesis], temperatures: Temperatures) -> Json:
    """Return the calibration of whole parses and of their leaves, before and after the temperature."""
    from treepiece.training.tuning import leaf_log_p, parse_log_p

    return {
        "parses": _calibration(*parse_log_p(examples, best), temperatures.parse),
        "leaves": _calibration(*leaf_log_p(examples, best), temperatures.leaf),
    }


def _calibration(log_p: Floats, is_right: Bools, temperature: float) -> Json:
    before, after = np.exp(np.minimum(log_p, 0.0)), np.exp(np.minimum(log_p, 0.0) / temperature)
    return {
        "answers": len(log_p),
        "temperature": temperature,
        "error_before": expected_calibration_error(before, is_right, N_BINS),
        "error_after": expected_calibration_error(after, is_right, N_BINS),
        "bins_before": reliability_bins(before, is_right),
        "bins_after": reliability_bins(after, is_right),
    }


def reliability_bins(confidences: Floats, is_right: Bools) -> list[dict[str, float]]:
    """Return for each bin of confidences that has any: how many, their mean, and the share that is right.

    >>> reliability_bins(np.array([0.9, 0.92]), np.array([True, False]))
    [{'answers': 2, 'confidence': 0.91, 'right': 0.5}]
    """
    bins = np.minimum((confidences * N_BINS).astype(int), N_BINS - 1)
    return [
        {
            "answers": int(np.count_nonzero(bins == place)),
            "confidence": float(np.mean(confidences[bins == place])),
            "right": float(np.mean(is_right[bins == place])),
        }
        for place in np.unique(bins).tolist()
    ]


def time_parsers(parsers: Mapping[str, Parser], rows: Sequence[Row]) -> Json:
    """Return the milliseconds of one parse for each parser: subwords in, skeleton and spans out."""
    first = next(iter(parsers.values()))
    examples, _ = make_examples(rows[:: max(1, len(rows) // N_TIMED)][:N_TIMED], first.subwords)
    ids = [as_ids([example.subwords.ids]) for example in examples]
    runs = {name: lambda item, model=parser.model: model.parse(ids[item]) for name, parser in parsers.items()}
    return {
        name: {"rows": len(values), **summarise(values)}
        for name, values in time_systems(runs, len(ids), ROUNDS).items()
    }


def as_writer(trained: TrainedModel) -> AutoregressiveModel | None:
    """Return the encoder and the reranker of a model as an autoregressive parser; None where there is no reranker.

    The reranker is the decoder of the autoregressive baseline, trained with the units. Made to write, token by
    token, it is an autoregressive parser with the same encoder, rows and epochs as the TreePiece parser that it
    belongs to: between the two ways to decode, all else is equal.
    """
    from treepiece.decoding.linearization import TokenGrammar
    from treepiece.models.baselines import AutoregressiveModel
    from treepiece.models.treepiece_model import TreePieceModel

    model, definition = trained.model, trained.definition
    if not isinstance(model, TreePieceModel) or model.reranker is None:
        return None
    grammar = TokenGrammar(model.reranker.vocabulary, definition.pairs, budget=definition.decoder.max_length)
    writer = AutoregressiveModel(model.encoder, grammar, definition.decoder)
    writer.decoder = model.reranker.decoder
    return writer.eval()


def score_writer(folder: Path, rows: Sequence[Row]) -> Json:
    """Return the scores of what the reranker of a model writes greedily in PyTorch; none where there is no reranker."""
    from treepiece.models.trained import load_model

    trained = load_model(folder)
    writer = as_writer(trained)
    return {} if writer is None else scores_to_json(predict_rows(trained, rows, writer)[1])


def predict_rows(
    trained: TrainedModel, rows: Sequence[Row], model: AutoregressiveModel | None = None
) -> tuple[list[Example], list[Outcome]]:
    """Return the rows that can be read, and what a model in PyTorch makes of them; by default the trained one."""
    from treepiece.training.prediction import predict

    examples, _ = make_examples(rows, trained.subwords)
    with ProgressBars("rows") as bars:
        outcomes = predict(
            model or trained.model,
            examples,
            trained.decoding,
            on_rows=lambda done: bars.update("scoring", done, len(examples)),
        )
    return examples, outcomes
