"""`treepiece.check`, `treepiece.train` and `treepiece.evaluate`: each in one call.

The command line is built on these. For a training loop of your own see `treepiece.models.batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treepiece.bundle import TRAINING, WEIGHTS, find_graphs, find_weights, read_bundle
from treepiece.checking.checker import Annotate, CheckConfig, ModelParse, check_rows
from treepiece.checking.findings import CheckReport
from treepiece.data.examples import Example, make_examples, outcome_of
from treepiece.data.fingerprints import skeleton_digest
from treepiece.data.out_of_scope import check_scope, read_requests
from treepiece.data.reader import DataSource, RowStream, load_rows
from treepiece.data.rows import Row
from treepiece.decoding.pipeline import confidence
from treepiece.decoding.types import DecodingConfig, Hypothesis
from treepiece.definition import Definition
from treepiece.errors import OptionError
from treepiece.evaluation.outcomes import Outcome
from treepiece.evaluation.scores import Scores, score
from treepiece.extras import needs_training
from treepiece.progress import NoProgress, Progress
from treepiece.runtime.parser import Parser
from treepiece.runtime.sessions import as_ids, precisions_in
from treepiece.spelling import TextTokenizer, TokenizedText

if TYPE_CHECKING:
    from treepiece.training.preparation import Data
    from treepiece.training.recipe import Recipe
    from treepiece.training.run import TrainingResult


def check(
    data: RowStream,
    eval: RowStream | None = None,  # noqa: A002  # the name of the split
    *,
    split: str = "train",
    eval_split: str = "eval",
    model: str | Path | None = None,
    config: CheckConfig | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """Return what may be wrong with rows, before a model is trained on them.

    Args:
        data: A TOPv2 folder, a file, `-` for standard input, or rows or pairs of an utterance and its parse, which are
            read one by one.
        eval: Rows to evaluate with: they are checked too, and compared with those of `data`.
        split: Which files of a folder in `data`: those named `DOMAIN_SPLIT.tsv`.
        eval_split: Which files of a folder in `eval`.
        model: A folder that `train` or `treepiece export` wrote, or `"bundled"`. It parses the utterances, and rows
            where it is confident of another parse are reported. A model that was trained on these rows has learned
            their errors and finds fewer of them: use one that was trained on other rows.
        config: Limits, and the number of examples.
        progress: Receives reports.
    """
    annotate = None if model is None else _annotate_with(open_predictor(model))
    return check_rows(
        data, eval, split=split, eval_split=eval_split, annotate=annotate, config=config, progress=progress
    )


def _annotate_with(predictor: Predictor) -> Annotate:
    labels, temperatures = set(predictor.definition.labels), predictor.decoding.temperatures

    def annotate(rows: Sequence[Row]) -> list[ModelParse | None]:
        known = [row for row in rows if {node.label for node in row.skeleton.nodes()} <= labels]
        examples, _ = make_examples(known, predictor.tokenizer.subwords)
        parses: dict[int, ModelParse] = {}
        for example, best in zip(examples, predictor.parse(examples, lambda done: None), strict=True):
            outcome = outcome_of(example, best)
            parses[id(example.frame)] = ModelParse(
                outcome.predicted, outcome.is_exact, confidence(best.log_p, temperatures.parse)
            )
        return [parses.get(id(row.frame)) for row in rows]

    return annotate


def train(
    data: DataSource,
    output: str | Path,
    *,
    recipe: Recipe | Mapping[str, Any] | str | Path | None = None,
    validation: DataSource | None = None,
    split: str = "train",
    validation_split: str | None = None,
    init: str | Path | None = None,
    out_of_scope: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TrainingResult:
    """Train a parser, and write it to a folder that `evaluate`, `TrainedModel` and `treepiece export` read.

    The model of the epoch with the best exact match on the validation rows is kept.

    Args:
        data: A TOPv2 folder, a file, rows, or pairs of an utterance and its parse.
        output: The folder to write.
        recipe: A `Recipe`, settings by name, or a YAML file.
        validation: Rows to validate on; by default a part of `data` is held out.
        split: Which files of a folder to train on: those named `DOMAIN_SPLIT.tsv`.
        validation_split: Which files of `validation`, or of `data`, to validate on.
        init: A model to start from: its folder, or `"bundled"`. New labels are added to it.
        out_of_scope: A file of requests that the parser must not understand, one per line; by default requests to an
            assistant about many other things. Those of them that look like training rows are left out.
        resume: Continue the run in `output` from its last checkpoint. If there is none, a new run begins; if the
            run is complete, its result is returned.
        progress: Receives reports.
        should_stop: Called after each step. If it returns True, the run is saved and ends, to be resumed later.
    """
    with needs_training("train"):
        from treepiece.training import run

    output, progress = Path(output), progress or NoProgress()
    continues = resume and run.is_begun(output)
    if resume and run.is_finished(output):
        progress.message(f"{output}: this training is complete; to train further use --init with another --output")
        return run.read_result(output)
    if resume and not continues:
        progress.message(f"{output}: there is no run to continue: a new one begins")
    settings = _as_recipe(recipe)
    if continues:
        run.check_same(output, settings, has_init=init is not None)
        settings = run.planned_recipe(output)
    start = find_weights(init) if init is not None and not continues else None  # before any work
    rows = _training_data(data, split, validation, validation_split, settings)
    if out_of_scope is not None:
        requests = read_requests(out_of_scope)
        known = [row.frame.utterance for row in (*rows.train, *rows.validation) if row.frame]
        check_scope(requests, known, out_of_scope)
        rows = replace(rows, out_of_scope=requests)
    fabric = run.make_fabric()
    if not fabric.is_global_zero:
        progress = NoProgress()  # one process reports for all
    if continues:
        trained = run.reopen(output, rows)
    else:
        trained = run.begin(output, rows, settings, init=start, fabric=fabric, progress=progress)
    result = run.fit(output, rows, trained, fabric=fabric, progress=progress, should_stop=should_stop)
    run.leave(fabric)
    return result


def _as_recipe(recipe: Recipe | Mapping[str, Any] | str | Path | None) -> Recipe:
    from treepiece.training.recipe import Recipe, make_recipe, read_recipe

    if isinstance(recipe, Recipe):
        return recipe
    return make_recipe(recipe) if isinstance(recipe, Mapping) else read_recipe(recipe)


def _training_data(
    data: DataSource, split: str, validation: DataSource | None, validation_split: str | None, recipe: Recipe
) -> Data:
    from treepiece.training.preparation import Data, hold_out

    rows = load_rows(data, split)
    if validation is None and validation_split is None:
        return hold_out(rows, recipe)
    if validation is None:
        if not isinstance(data, str | Path) or not Path(data).is_dir():
            raise OptionError("--validation-split: the data is no folder of splits: name the rows with --validation")
        validation = data
    return Data(rows, load_rows(validation, validation_split or "eval"))


def evaluate(
    model: str | Path,
    data: DataSource,
    *,
    split: str = "eval",
    precision: str | None = None,
    decoding: DecodingConfig | None = None,
    spelling: bool = True,
    progress: Progress | None = None,
) -> Scores:
    """Return the scores of a model on rows with gold parses.

    Args:
        model: A folder that `train` or `treepiece export` wrote, or `"bundled"`.
        data: A TOPv2 folder, a file, rows, or pairs of an utterance and its parse.
        split: Which files of a folder: those named `DOMAIN_SPLIT.tsv`.
        precision: `"float"` or `"int8"` evaluates the graphs of a bundle; by default the weights are evaluated in
            PyTorch if the folder has them.
        decoding: Settings of decoding that replace those of the model.
        spelling: Whether spelling is corrected, as a parser does by default.
        progress: Receives reports.

    Rows whose utterance is too long for the encoder are not scored.
    """
    predictor = open_predictor(model, precision, decoding, spelling=spelling)
    outcomes = list(predictor.predict(load_rows(data, split), progress or NoProgress()).by_row.values())
    return predictor.score(outcomes)


@dataclass(frozen=True)
class Predictions:
    """The outcomes of the parsed rows, by the identity of their frames, and the reasons why others were not parsed."""

    by_row: Mapping[int, Outcome]
    left_out: Sequence[str]


@dataclass(frozen=True)
class Predictor:
    """A model to evaluate, in PyTorch or on ONNX Runtime."""

    definition: Definition
    metadata: Mapping[str, Any]
    tokenizer: TextTokenizer
    decoding: DecodingConfig
    parse: Callable[[Sequence[Example], Callable[[int], None]], list[Hypothesis]]

    def predict(self, rows: Sequence[Row], progress: Progress) -> Predictions:
        """Return the outcomes of rows."""
        examples, left_out = make_examples(rows, self.tokenizer.subwords)
        examples = correct_spelling(examples, self.tokenizer)
        parses = self.parse(examples, lambda done: progress.update("parsing", done, len(examples)))
        by_row = {id(example.frame): outcome_of(example, best) for example, best in zip(examples, parses, strict=True)}
        return Predictions(by_row, left_out)

    def score(self, outcomes: Sequence[Outcome]) -> Scores:
        """Return the scores of outcomes.

        Rows whose skeletons the model saw in training and others are also scored apart, if the bundle tells.
        """
        known = self.metadata.get("skeletons")
        if not isinstance(known, list):
            return score(outcomes)
        digests = set(known)
        skeletons = {outcome.gold.skeleton for outcome in outcomes}
        return score(outcomes, {skeleton for skeleton in skeletons if skeleton_digest(skeleton) in digests})


def correct_spelling(examples: Sequence[Example], tokenizer: TextTokenizer) -> list[Example]:
    """Return examples with the subwords that a parser reads; gold spans in subwords stay those of the text as typed.

    Only texts with corrections are split into subwords again.
    """
    corrector, found = tokenizer.corrector, list(examples)
    if corrector is None:
        return found
    changed = [place for place, example in enumerate(found) if corrector.corrections(example.frame.utterance)]
    again = tokenizer.try_batch([found[place].frame.utterance for place in changed])
    for place, one in zip(changed, again, strict=True):
        if isinstance(one, TokenizedText):
            found[place] = replace(found[place], subwords=one.subwords)
    return found


def open_predictor(
    model: str | Path,
    precision: str | None = None,
    decoding: DecodingConfig | None = None,
    *,
    spelling: bool = True,
) -> Predictor:
    """Return a model to evaluate: with graphs if a precision is given or the folder has no weights, else in PyTorch."""
    folder = find_graphs(model)
    bundle = read_bundle(folder, check=False)
    if precision is not None or (WEIGHTS not in bundle.files and precisions_in(bundle)):
        parser = Parser(folder, precision=precision, decoding=decoding, spelling=spelling)

        def parse(examples: Sequence[Example], on_rows: Callable[[int], None]) -> list[Hypothesis]:
            hypotheses = []
            for example in examples:
                ((best,),) = parser.model.parse(as_ids([example.subwords.ids]))
                hypotheses.append(best)
                on_rows(len(hypotheses))
            return hypotheses

        return Predictor(parser.definition, bundle.read_json(TRAINING), parser.text_tokenizer, parser.decoding, parse)
    with needs_training("evaluate"):
        from treepiece.models.trained import load_model
        from treepiece.training.prediction import best_hypotheses
    trained = load_model(folder)
    settings = decoding or trained.decoding
    return Predictor(
        trained.definition,
        trained.metadata,
        TextTokenizer(trained.subwords, trained.dictionary if spelling else None),
        settings,
        lambda examples, on_rows: best_hypotheses(trained.model, examples, settings, on_rows),
    )
