"""From rows and a recipe to a model that is ready to be trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from treepiece.data.rows import Row
from treepiece.definition import Definition, ModelKind
from treepiece.errors import DataError, RecipeError
from treepiece.models.build import ParserModel, build_model
from treepiece.models.encoder import load_encoder
from treepiece.models.layers import set_dropout
from treepiece.models.trained import TrainedModel
from treepiece.models.transfer import extend_definition, transfer_weights
from treepiece.models.treepiece import TreePieceModel
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.training.examples import Example, make_examples, too_large
from treepiece.training.observer import Observer
from treepiece.training.pretraining import pretrain_units
from treepiece.training.recipe import Recipe
from treepiece.trees.node import Node

_SHOWN = 3


@dataclass(frozen=True)
class Data:
    """The rows to learn from and those to validate with."""

    train: Sequence[Row]
    validation: Sequence[Row]


def hold_out(rows: Sequence[Row], recipe: Recipe) -> Data:
    """Return rows in two parts: a share for validation, drawn with the recipe's seed, and the rest to learn from."""
    if len(rows) < 2:
        raise DataError(
            f"training needs two rows or more, one to learn from and one to validate with: there is {len(rows)}"
        )
    n = min(max(1, round(recipe.holdout * len(rows))), recipe.most_held_out, len(rows) - 1)
    chosen = set(np.random.default_rng([recipe.seed, len(rows)]).permutation(len(rows))[:n].tolist())
    return Data(
        [row for place, row in enumerate(rows) if place not in chosen],
        [row for place, row in enumerate(rows) if place in chosen],
    )


def inherit(recipe: Recipe, init: TrainedModel) -> Recipe:
    """Return a recipe with what cannot change when training goes on from a bundle: encoder, sizes, kind of units.

    A ranker or a judge that is there has to learn too: it goes on having its say, also on labels that are new to it.
    """
    if init.definition.kind is not recipe.model:
        raise RecipeError(
            f"the bundle to start from is a model {init.definition.kind}, the recipe's is {recipe.model}: "
            f"choose --model {init.definition.kind}"
        )
    units = replace(recipe.units, composed=init.definition.composed, hinted=init.definition.hinted, pretrained=False)
    before = init.facts.get("recipe", {})
    recipe = replace(
        recipe, encoder=str(before.get("encoder", recipe.encoder)), decoder=init.definition.decoder, units=units
    )
    if init.definition.judged and not recipe.judge_weight:
        recipe = replace(recipe, judge_weight=float(before.get("judge_weight") or 1.0))
    if init.definition.ranked and not recipe.ranking.weight:
        weight = float(before.get("ranking", {}).get("weight") or 1.0)
        recipe = replace(recipe, ranking=replace(recipe.ranking, weight=weight))
    return recipe


def new_model(rows: Sequence[Row], recipe: Recipe, observer: Observer, init: TrainedModel | None) -> TrainedModel:
    """Return a model with new decoders for the trees of these rows, or `init` with what is new in them added."""
    torch.manual_seed(recipe.seed)
    skeletons = [row.skeleton for row in rows]
    tokenizer = _train_tokenizer(skeletons, recipe, observer) if recipe.model is ModelKind.TREEPIECE else None
    definition = Definition.of_trees(
        recipe.model,
        set(skeletons),
        decoder=recipe.decoder,
        composed=recipe.units.composed,
        tokenizer=tokenizer,
        ranked=recipe.ranking.weight > 0,
        judged=recipe.judge_weight > 0,
        hinted=recipe.units.hinted,
    )
    if init is not None:
        definition = extend_definition(init.definition, definition)
        model = build_model(definition, init.model.encoder)
        transfer_weights(init, definition, model)
        return TrainedModel(definition, model, init.subwords)
    encoder, subwords = load_encoder(recipe.encoder)
    model = build_model(definition, encoder)
    if isinstance(model, TreePieceModel) and recipe.units.pretrained:
        assert tokenizer is not None  # a TreePiece model has one
        _pretrain(model, tokenizer, skeletons, recipe, observer)
    return TrainedModel(definition, model, subwords)


def make_ready(model: ParserModel, recipe: Recipe) -> None:
    """Put a model into the state in which a recipe trains it: what is dropped, and what stays as it is."""
    model.train()
    if recipe.freeze_words:
        model.encoder.freeze_words()
    if recipe.dropout is not None:
        set_dropout(model, recipe.dropout)


def training_examples(rows: Sequence[Row], trained: TrainedModel, observer: Observer) -> list[Example]:
    """Return the examples that the model can learn from; say how many rows were left out, and why."""
    made, left_out = make_examples(
        rows, trained.subwords, lambda done: observer.stage("reading utterances", done, len(rows))
    )
    examples = []
    definition = trained.definition
    for example in made:
        is_linear = definition.kind is not ModelKind.TREEPIECE or definition.judged
        reason = too_large(example, definition.decoder.longest, linear=is_linear)
        if reason:
            left_out.append(reason)
        else:
            examples.append(example)
    for reason in left_out[:_SHOWN]:
        observer.remark(f"left out: {reason}")
    if left_out:
        observer.remark(f"left out {len(left_out):,} of {len(rows):,} rows")
    if not examples:
        raise DataError("no row is left to learn from")
    return examples


def _train_tokenizer(skeletons: Sequence[Node], recipe: Recipe, observer: Observer) -> TreePieceTokenizer:
    return TreePieceTokenizer.train(
        skeletons,
        recipe.tokenizer,
        lambda stage, done, total: observer.stage(f"tokenizer: {stage}", done, total),
    )


def _pretrain(
    model: TreePieceModel, tokenizer: TreePieceTokenizer, skeletons: Sequence[Node], recipe: Recipe, observer: Observer
) -> None:
    """Start the embeddings of the units from masked language modelling."""
    counts = Counter(skeletons)
    encodings = tokenizer.encode_batch(counts)
    sequences = [
        (tokenizer.serialize(unit_ids), count) for unit_ids, count in zip(encodings, counts.values(), strict=True)
    ]
    config = recipe.units.pretraining
    pretrained = pretrain_units(
        sequences,
        len(tokenizer.units),
        model.encoder.width,
        config,
        n_heads=recipe.decoder.n_heads,
        seed=recipe.seed,
        on_epoch=lambda epoch, _: observer.stage("pretraining units", epoch, config.epochs),
    )
    observer.stage("pretraining units", config.epochs, config.epochs)  # it may have stopped before
    model.units.start_from(pretrained.embeddings)
