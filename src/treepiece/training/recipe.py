"""Recipes: all settings of a training run, in one validated file.

A recipe is YAML, and each of its settings has a default, so that a recipe has only those that differ:

    kind: treepiece
    epochs: 3
    batch_size: 128
    optimizer:
      learning_rates: {encoder: 1.5e-4, units: 5.0e-4, spans: 5.0e-4}

Two parts are defined where they are used: `tokenizer` in `tokenizer.learning`, and `decoder` in `treepiece.definition`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from treepiece.definition import DecoderConfig, ModelKind
from treepiece.errors import RecipeError
from treepiece.models.losses import LossConfig
from treepiece.tokenizer.learning import TokenizerConfig
from treepiece.training.noise import NOISE_WEIGHTS, NoiseKind

MODULES = {
    ModelKind.TREEPIECE: ("encoder", "units", "spans", "reranker"),
    ModelKind.AR: ("encoder", "decoder"),
    ModelKind.NAR: ("encoder", "length", "decoder"),
}
"""The modules of each kind of model; each has its own learning rate. Not every TreePiece model has a reranker."""

_STEPS_BY_DEFAULT = 800
_EPOCHS_BY_DEFAULT = (4, 80)


class Schedule(StrEnum):
    """The decay of the learning rate after the warm-up."""

    COSINE = "cosine"
    EXPONENTIAL = "exponential"


class MatrixPrecision(StrEnum):
    """The precision of the factors of matrix products in training."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


def _number(value: object) -> object:
    """Return a number for a text such as 1e-4, which YAML reads as a text (a number would be 1.0e-4)."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value)
    return value


Number = Annotated[float, BeforeValidator(_number)]
Fraction = Annotated[Number, Field(ge=0, le=1)]
Weight = Annotated[Number, Field(ge=0, lt=math.inf)]
Count = Annotated[int, Field(ge=1)]


class RecipePart(BaseModel):
    """The base of a recipe and its parts: unknown names and values of the wrong type are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class OptimizerConfig(RecipePart):
    """AdamW and its learning rates.

    The rates rise over the first `warmup` of all steps. Then they follow a cosine down to `floor`, as a share of the
    highest, or they fall by the factor `decay` at the end of every epoch.
    """

    learning_rates: Mapping[str, Weight] = {}
    weight_decay: Weight = 0.01
    clip: Weight = 1.0
    schedule: Annotated[Schedule, Field(strict=False)] = Schedule.COSINE
    warmup: Fraction = 0.08
    floor: Fraction = 0.02
    decay: Fraction = 0.999

    @model_validator(mode="after")
    def _check_schedule(self) -> Self:
        for name, schedule in (("floor", Schedule.COSINE), ("decay", Schedule.EXPONENTIAL)):
            if self.schedule is not schedule and getattr(self, name) != OptimizerConfig.model_fields[name].default:
                raise ValueError(f"{name} belongs to the schedule {schedule}, and the schedule is {self.schedule}")
        return self


class PretrainingConfig(RecipePart):
    """Settings of `pretrain_units`; mask rate, epochs and batch size are the paper's.

    `holdout` is the share of skeletons to evaluate on; with 0, the evaluation is on the training skeletons.
    """

    mask_rate: Annotated[Number, Field(gt=0, le=1)] = 0.15
    epochs: Count = 20
    batch_size: Count = 256
    learning_rate: Annotated[Number, Field(gt=0, le=1)] = 1e-3
    holdout: Annotated[Number, Field(ge=0, lt=1)] = 0.05


class UnitConfig(RecipePart):
    """The settings of the TreePiece model's units.

    `pretrained` starts their embeddings from masked language modelling, as the paper does. `placeholder_label`,
    `compositional` embeddings and `label_logits` are extensions (see `definition.Extensions`). With `sampling` above 0
    each epoch draws a new partition of every tree, with probability in proportion to p(partition) ** sampling; with 0
    it takes the best.
    """

    pretrained: bool = False
    placeholder_label: bool = True
    compositional: bool = True
    label_logits: bool = True
    sampling: Weight = 0.0
    pretraining: PretrainingConfig = PretrainingConfig()

    @model_validator(mode="after")
    def _check_pretraining(self) -> Self:
        if not self.pretrained and self.pretraining != PretrainingConfig():
            raise ValueError("pretraining has settings, but pretrained is false: set it to true, or leave them out")
        return self


class NoiseConfig(RecipePart):
    """The noise in training rows: each epoch draws anew which rows have it, and what kinds.

    `share` is the share of the rows. `weights` says how frequent the kinds are; one that is not named has the weight 1,
    and 0 leaves a kind out.
    """

    share: Fraction = 0.0
    weights: Mapping[Annotated[NoiseKind, Field(strict=False)], Weight] = {}

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if self.weights and not self.share:
            raise ValueError("weights are given, but share is 0: set it above 0, or leave them out")
        if not any(self.kind_weights.values()):
            raise ValueError("all weights are 0: leave out one kind or more, or set share to 0")
        return self

    @property
    def kind_weights(self) -> dict[NoiseKind, float]:
        """The weight of each kind."""
        return {**NOISE_WEIGHTS, **self.weights}


class Recipe(RecipePart):
    """The settings of a training run.

    `epochs` is the maximum number of epochs; by default, enough for 800 steps. Training stops after `patience` epochs
    without a better validation EM. `validations` limits how often a run validates, the last time at its end; without
    it, a run validates after every epoch. `holdout` is the share of the rows to validate on if no validation rows are
    given, at most `max_held_out` rows. `reranker_loss_weight` is the weight of the reranker's loss; with 0 there is no
    reranker. `dropout` is that of all modules, the encoder's too. `precision` is that of matrix products. Runs with the
    same seed and different `shuffle_seed` hold out the same rows and see the others in different orders: if they start
    from the same model, their weights can be averaged. With `scope` a TreePiece model learns at the end which texts are
    out of its scope (see `training.scoping`). The baselines ignore settings of TreePiece, so that one recipe can train
    all three kinds.
    """

    kind: Annotated[ModelKind, Field(strict=False)] = ModelKind.TREEPIECE
    encoder: str = "minilm"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    shuffle_seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    epochs: Count | None = None
    batch_size: Count = 32
    patience: Count | None = None
    validations: Count | None = None
    holdout: Fraction = 0.1
    max_held_out: Count = 2000
    label_smoothing: Fraction = 0.1
    span_loss_weight: Weight = 0.5
    reranker_loss_weight: Weight = 0.0
    freeze_word_embeddings: bool = True
    scope: bool = True
    dropout: Fraction = 0.1
    precision: Annotated[MatrixPrecision, Field(strict=False)] = MatrixPrecision.FLOAT32
    checkpoint_seconds: Weight = 300.0
    optimizer: OptimizerConfig = OptimizerConfig()
    decoder: DecoderConfig = DecoderConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    units: UnitConfig = UnitConfig()
    noise: NoiseConfig = NoiseConfig()

    @model_validator(mode="after")
    def _check_learning_rates(self) -> Self:
        for name in self.optimizer.learning_rates:
            if name not in MODULES[self.kind]:
                raise ValueError(
                    f"optimizer.learning_rates.{name}: a model of the kind {self.kind} has no such module, "
                    f"its modules are {', '.join(MODULES[self.kind])}"
                )
        return self

    @property
    def loss(self) -> LossConfig:
        """The weights of the losses."""
        return LossConfig(self.label_smoothing, self.span_loss_weight, self.reranker_loss_weight)

    def learning_rate(self, module: str) -> float:
        """Return the highest learning rate of a module."""
        default = 1.5e-4 if module == "encoder" else 5e-4
        return self.optimizer.learning_rates.get(module, default)

    def n_epochs(self, n_rows: int) -> int:
        """Return the number of epochs: that of the recipe, or as many as the data needs."""
        if self.epochs is not None:
            return self.epochs
        least, most = _EPOCHS_BY_DEFAULT
        return min(most, max(least, math.ceil(_STEPS_BY_DEFAULT * self.batch_size / n_rows)))

    def validates_after(self, epoch: int, n_epochs: int) -> bool:
        """Return whether a run of `n_epochs` validates after an epoch; epochs count from 1.

        >>> recipe = Recipe(validations=2)
        >>> [epoch for epoch in range(1, 6) if recipe.validates_after(epoch, 5)]
        [3, 5]
        """
        every = 1 if self.validations is None else math.ceil(n_epochs / self.validations)
        return epoch % every == 0 or epoch == n_epochs

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as a value that `json.dumps` can write and `make_recipe` reads."""
        return self.model_dump(mode="json")


def read_recipe(path: str | Path | None, changes: Mapping[str, Any] | None = None) -> Recipe:
    """Return the recipe in a YAML file, or the default one, with the given settings changed."""
    settings: object = {}
    if path is not None:
        try:
            settings = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
        except OSError as error:
            raise RecipeError(f"{path}: cannot be read: {error.strerror}") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise RecipeError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if isinstance(settings, Mapping):
        settings = {**settings, **(changes or {})}
    try:
        return make_recipe(settings)
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}" if path else str(error)) from None


def make_recipe(settings: object) -> Recipe:
    """Return a recipe from settings by name, as YAML and JSON have them; raise with the name of a wrong one.

    >>> make_recipe({"tokenizer": {"merges": 100}}).tokenizer.merges
    100
    >>> make_recipe({"tokenizer": {"merge": 100}})
    Traceback (most recent call last):
    treepiece.errors.RecipeError: tokenizer.merge: there is no such setting; did you mean merges?
    """
    if not isinstance(settings, Mapping):
        raise RecipeError(f"the recipe: expected settings by name, got {settings!r:.60}")
    try:
        # As JSON: in strict mode pydantic accepts texts for enumerations only from JSON.
        return Recipe.model_validate_json(json.dumps(settings, default=str))
    except ValidationError as error:
        raise RecipeError(_explain(error.errors(include_url=False)[0])) from None


_RENAMED = {
    "model": "kind",
    "batch": "batch_size",
    "units.pretraining.batch": "units.pretraining.batch_size",
    "branch": "shuffle_seed",
    "most_held_out": "max_held_out",
    "span_weight": "span_loss_weight",
    "judge_weight": "reranker_loss_weight",
    "freeze_words": "freeze_word_embeddings",
    "decoder.dropout": "dropout",
    "decoder.longest": "decoder.max_length",
    "units.composed": "units.compositional",
    "units.hinted": "units.label_logits",
}
_REMOVED = ("ranking", "ema")


def _explain(error: ErrorDetails) -> str:
    """Return what is wrong with a setting, in one line that begins with its name."""
    path = [str(part) for part in error["loc"] if part != "[key]"]  # pydantic adds it for a wrong name in a mapping
    name, kind = ".".join(path), error["type"]
    if kind == "value_error":
        reason = error["msg"].removeprefix("Value error, ")
        return f"{name}: {reason}" if name else reason
    if kind not in ("extra_forbidden", "unexpected_keyword_argument"):
        found = repr(error["input"])
        wanted = error["msg"].replace("Input should be", "must be").replace("an object", "settings by name")
        return f"{name}: {wanted}, got {found:.60}"
    if name in _RENAMED:
        return f"{name}: this setting is now called {_RENAMED[name]}"
    if name in _REMOVED:
        return f"{name}: there is no such setting any more: leave it out"
    names = list(vars(reduce(getattr, path[:-1], Recipe())))  # of the settings in the same part of the recipe
    close = get_close_matches(path[-1], names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
    return f"{name}: there is no such setting; {hint}"
