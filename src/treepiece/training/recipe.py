"""Recipes: everything that decides how a model is trained, in one checked file.

A recipe is YAML, and each of its settings has a default, so that a recipe says only what is special about it:

    model: treepiece
    epochs: 3
    batch: 128
    optimizer:
      learning_rates: {encoder: 1.5e-4, units: 5.0e-4, spans: 5.0e-4}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from treepiece.definition import DecoderConfig, ModelKind
from treepiece.errors import OptionError, RecipeError
from treepiece.options import fraction, whole_number
from treepiece.tokenizer.config import TokenizerConfig
from treepiece.training.configs import read_config
from treepiece.training.precision import Precision
from treepiece.training.pretraining import PretrainingConfig

MODULES = {
    ModelKind.TREEPIECE: ("encoder", "units", "spans", "judge"),
    ModelKind.AR: ("encoder", "decoder"),
    ModelKind.NAR: ("encoder", "length", "decoder"),
}
"""The modules of each model, which have learning rates of their own. A judge is not in all TreePiece models."""

_STEPS_BY_DEFAULT = 800
_EPOCHS_BY_DEFAULT = (4, 80)


class Schedule(StrEnum):
    """How the learning rate goes on after the warm-up."""

    COSINE = "cosine"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW and the course of its learning rates.

    The rates rise over the first `warmup` of all steps. Then they follow a cosine down to `floor`, as a share of the
    highest, or they fall by the factor `decay` at the end of every epoch.
    """

    learning_rates: Mapping[str, float] = field(default_factory=dict)
    weight_decay: float = 0.01
    clip: float = 1.0
    schedule: Schedule = Schedule.COSINE
    warmup: float = 0.08
    floor: float = 0.02
    decay: float = 0.999

    def __post_init__(self) -> None:
        for name, rate in self.learning_rates.items():
            if not 0 <= rate < math.inf:
                raise OptionError(f"learning_rates.{name} must be a number, 0 or more, got {rate!r}")
        for name in ("weight_decay", "clip"):
            if not 0 <= getattr(self, name) < math.inf:
                raise OptionError(f"{name} must be a number, 0 or more, got {getattr(self, name)!r}")
        for name in ("warmup", "floor", "decay"):
            fraction(name, getattr(self, name))


@dataclass(frozen=True)
class UnitConfig:
    """How the TreePiece model treats units.

    `pretrained` starts their embeddings from masked language modelling; `composed` builds them from labels and shape
    beside a learned part; `hinted` lets words hint at labels. With `sampling` above 0 each epoch draws a new partition
    of every tree, with probability in proportion to p(partition) ** sampling; with 0 it takes the best.
    """

    pretrained: bool = False
    composed: bool = True
    hinted: bool = True
    sampling: float = 0.0
    pretraining: PretrainingConfig = field(default_factory=PretrainingConfig)

    def __post_init__(self) -> None:
        if not 0 <= self.sampling < math.inf:
            raise OptionError(f"sampling must be a number, 0 or more, got {self.sampling!r}")


@dataclass(frozen=True)
class RankingConfig:
    """How a ranker of the beam's candidates is trained.

    `weight` is that of its loss; with 0 there is no ranker. `share` is the share of each batch that is searched for
    candidates: the rows whose gold tree the unit decoder finds least probable.
    """

    weight: float = 0.0
    share: float = 0.25

    def __post_init__(self) -> None:
        if not 0 <= self.weight < math.inf:
            raise OptionError(f"weight must be a number, 0 or more, got {self.weight!r}")
        if not 0 < self.share <= 1:
            raise OptionError(f"share must be above 0 and at most 1, got {self.share!r}")


@dataclass(frozen=True)
class Recipe:
    """How a model is trained.

    `epochs` is the most; without it there are enough for 800 steps. `patience` is how many epochs without a better
    validation EM end the training. `validations` is how often a run validates at most, the last time at its end;
    without it, after every epoch. `holdout` is the share of the rows that validate where no rows are given for that, at
    most `most_held_out` rows. `judge_weight` is that of the loss of a judge of whole frames; with 0 there is no judge.
    `dropout` is that of all modules; without it the encoder and the decoders have their own. `precision` is that of
    matrix products. Runs of one seed with another `branch` hold out the same rows and see the others in another order:
    from one start they come to models that can be mixed. `ema` is the decay of an average of the weights, which is then
    the model; 0 for none.
    """

    model: ModelKind = ModelKind.TREEPIECE
    encoder: str = "minilm"
    seed: int = 0
    branch: int = 0
    epochs: int | None = None
    batch: int = 32
    patience: int | None = None
    validations: int | None = None
    holdout: float = 0.1
    most_held_out: int = 2000
    label_smoothing: float = 0.1
    span_weight: float = 0.5
    judge_weight: float = 0.0
    freeze_words: bool = True
    dropout: float | None = None
    precision: Precision = Precision.FLOAT32
    ema: float = 0.0
    checkpoint_seconds: float = 300.0
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    units: UnitConfig = field(default_factory=UnitConfig)
    ranking: RankingConfig = field(default_factory=RankingConfig)

    def __post_init__(self) -> None:
        whole_number("seed", self.seed, 0, 2**63 - 1)
        whole_number("branch", self.branch, 0, 2**31 - 1)
        whole_number("batch", self.batch, 1)
        whole_number("most_held_out", self.most_held_out, 1)
        for name in ("epochs", "patience", "validations"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 1)
        for name in ("holdout", "label_smoothing", "ema", "dropout"):
            if getattr(self, name) is not None:
                fraction(name, getattr(self, name))
        for name in ("span_weight", "judge_weight", "checkpoint_seconds"):
            if not 0 <= getattr(self, name) < math.inf:
                raise OptionError(f"{name} must be a number, 0 or more, got {getattr(self, name)!r}")
        for name in self.optimizer.learning_rates:
            if name not in MODULES[self.model]:
                raise OptionError(
                    f"optimizer.learning_rates.{name}: the model {self.model} has no such module, "
                    f"its modules are {', '.join(MODULES[self.model])}"
                )

    def learning_rate(self, module: str) -> float:
        """Return the highest learning rate of a module."""
        default = 1.5e-4 if module == "encoder" else 5e-4
        return self.optimizer.learning_rates.get(module, default)

    def n_epochs(self, n_rows: int) -> int:
        """Return how many epochs there are: as many as the recipe says, or as many as the data needs."""
        if self.epochs is not None:
            return self.epochs
        least, most = _EPOCHS_BY_DEFAULT
        return min(most, max(least, math.ceil(_STEPS_BY_DEFAULT * self.batch / n_rows)))

    def validates_after(self, epoch: int, n_epochs: int) -> bool:
        """Return whether a run of so many epochs validates after an epoch; they count from 1.

        >>> recipe = Recipe(validations=2)
        >>> [epoch for epoch in range(1, 6) if recipe.validates_after(epoch, 5)]
        [3, 5]
        """
        every = 1 if self.validations is None else math.ceil(n_epochs / self.validations)
        return epoch % every == 0 or epoch == n_epochs


def read_recipe(path: str | Path | None, changes: Mapping[str, Any]) -> Recipe:
    """Return the recipe in a YAML file, or the default one, with some of its settings changed."""
    settings: object = {}
    if path is not None:
        try:
            settings = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
        except OSError as error:
            raise RecipeError(f"{path}: cannot be read: {error.strerror}") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise RecipeError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if isinstance(settings, Mapping):
        settings = {**settings, **changes}
    try:
        return read_config(Recipe, settings)
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}" if path else str(error)) from None
