"""Prepares a model for training, from rows and a recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from treepiece.data.examples import Example, make_examples, too_large, with_frames
from treepiece.data.out_of_scope import Request
from treepiece.data.rows import Row
from treepiece.definition import Definition, Extensions, ModelKind
from treepiece.errors import DataError, RecipeError
from treepiece.models.encoder import load_encoder
from treepiece.models.layers import set_dropout
from treepiece.models.trained import ParserModel, TrainedModel, build_model
from treepiece.models.transfer import extend_definition, transfer_weights
from treepiece.models.treepiece_model import TreePieceModel
from treepiece.progress import Progress
from treepiece.spelling import Dictionary
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.training.noise import add_noise
from treepiece.training.pretraining import pretrain_units
from treepiece.training.recipe import NoiseConfig, PretrainingConfig, Recipe
from treepiece.trees.node import Node

_SHOWN = 3
_UNIT_EXTENSIONS = ("placeholder_label", "compositional", "label_logits")


@dataclass(frozen=True)
class Data:
    """The rows to train on, those to validate on, and requests out of scope; None for those in `data.out_of_scope`."""

    train: Sequence[Row]
    validation: Sequence[Row]
    out_of_scope: Sequence[Request] | None = None


def hold_out(rows: Sequence[Row], recipe: Recipe) -> Data:
    """Return rows in two parts: a share for validation, drawn with the recipe's seed, and the rest for training."""
    if len(rows) < 2:
        raise DataError(
            f"training needs two rows or more, one to train on and one to validate on: there is {len(rows)}"
        )
    n = min(max(1, round(recipe.holdout * len(rows))), recipe.max_held_out, len(rows) - 1)
    chosen = set(np.random.default_rng([recipe.seed, len(rows)]).permutation(len(rows))[:n].tolist())
    return Data(
        [row for place, row in enumerate(rows) if place not in chosen],
        [row for place, row in enumerate(rows) if place in chosen],
    )


def inherit(recipe: Recipe, init: TrainedModel) -> Recipe:
    """Return a recipe with the settings that a bundle to start from decides: encoder, sizes, kind of units.

    An existing reranker is trained too, because it also scores the new labels.
    """
    if init.definition.kind is not recipe.kind:
        raise RecipeError(
            f"the bundle to start from is a model of the kind {init.definition.kind}, the recipe's is {recipe.kind}: "
            f"choose --kind {init.definition.kind}"
        )
    before = init.metadata.get("recipe", {})
    inherited = {"encoder": str(before.get("encoder", recipe.encoder)), "decoder": init.definition.decoder}
    if recipe.kind is ModelKind.TREEPIECE:
        units = {
            **{name: getattr(init.definition.extensions, name) for name in _UNIT_EXTENSIONS},
            "pretrained": False,
            "pretraining": PretrainingConfig(),
        }
        inherited["units"] = recipe.units.model_copy(update=units)
        if init.definition.extensions.reranker and not recipe.reranker_loss_weight:
            inherited["reranker_loss_weight"] = float(before.get("reranker_loss_weight") or 1.0)
    return recipe.model_copy(update=inherited)


def new_model(rows: Sequence[Row], recipe: Recipe, progress: Progress, init: TrainedModel | None) -> TrainedModel:
    """Return a model with new decoders for the trees of these rows, or `init` extended by new labels."""
    torch.manual_seed(recipe.seed)
    skeletons = [row.skeleton for row in rows]
    words = Dictionary.of_texts(row.frame.utterance for row in rows if row.frame)
    tokenizer, extensions = None, Extensions()
    if recipe.kind is ModelKind.TREEPIECE:
        tokenizer = TreePieceTokenizer.train(
            skeletons,
            recipe.tokenizer,
            lambda stage, done, total: progress.update(f"tokenizer: {stage}", done, total),
        )
        units = {name: getattr(recipe.units, name) for name in _UNIT_EXTENSIONS}
        extensions = Extensions(**units, reranker=recipe.reranker_loss_weight > 0)
    definition = Definition.of_trees(
        recipe.kind, set(skeletons), decoder=recipe.decoder, tokenizer=tokenizer, extensions=extensions
    )
    if init is not None:
        definition = extend_definition(init.definition, definition)
        model = build_model(definition, init.model.encoder)
        transfer_weights(init, definition, model)
        # Without the words that the model already knows, they would be corrected to those of the new rows.
        dictionary = init.dictionary and init.dictionary | words
        return TrainedModel(definition, model, init.subwords, dictionary=dictionary)
    encoder, subwords = load_encoder(recipe.encoder)
    model = build_model(definition, encoder)
    if isinstance(model, TreePieceModel) and recipe.units.pretrained:
        _pretrain(model, skeletons, recipe, progress)
    return TrainedModel(definition, model, subwords, dictionary=words)


def apply_recipe(model: ParserModel, recipe: Recipe) -> None:
    """Prepare a model for training: set its dropout, and freeze its word embeddings if the recipe says so."""
    model.train()
    if recipe.freeze_word_embeddings:
        model.encoder.freeze_word_embeddings()
    set_dropout(model, recipe.dropout)


def training_examples(rows: Sequence[Row], trained: TrainedModel, progress: Progress) -> list[Example]:
    """Return the examples that the model can learn from; report how many rows were left out, and why."""
    made, left_out = make_examples(
        rows, trained.subwords, lambda done: progress.update("reading utterances", done, len(rows))
    )
    reasons = [_too_large(example, trained.definition) for example in made]
    examples = [example for example, reason in zip(made, reasons, strict=True) if reason is None]
    left_out += filter(None, reasons)
    for reason in left_out[:_SHOWN]:
        progress.message(f"left out: {reason}")
    if left_out:
        progress.message(f"left out {len(left_out):,} of {len(rows):,} rows")
    if not examples:
        raise DataError("no row is left to train on")
    return examples


def _too_large(example: Example, definition: Definition) -> str | None:
    is_linear = definition.kind is not ModelKind.TREEPIECE or definition.extensions.reranker
    return too_large(example, definition.decoder.max_length, linear=is_linear)


def noised_examples(
    examples: Sequence[Example], trained: TrainedModel, config: NoiseConfig, rng: np.random.Generator
) -> Sequence[Example]:
    """Return the examples with noise in a share of them, or the very same examples if that share is 0.

    An example stays as it is if its noised utterance does not fit the model.
    """
    if not config.share:
        return examples
    places = np.flatnonzero(rng.random(len(examples)) < config.share).tolist()
    chosen = [examples[place] for place in places]
    frames = [add_noise(example.frame, rng, config.kind_weights) for example in chosen]
    noised = list(examples)
    for place, example in zip(places, with_frames(chosen, frames, trained.subwords), strict=True):
        if _too_large(example, trained.definition) is None:
            noised[place] = example
    return noised


def _pretrain(model: TreePieceModel, skeletons: Sequence[Node], recipe: Recipe, progress: Progress) -> None:
    """Start the embeddings of the units from masked language modelling."""
    counts, tokenizer = Counter(skeletons), model.tokenizer
    encodings = zip(tokenizer.encode_batch(counts), counts.values(), strict=True)
    sequences = [(tokenizer.serialize(unit_ids), count) for unit_ids, count in encodings]
    config = recipe.units.pretraining
    embeddings, _ = pretrain_units(
        sequences,
        len(tokenizer.units),
        model.encoder.width,
        config,
        n_heads=recipe.decoder.n_heads,
        seed=recipe.seed,
        on_epoch=lambda epoch, _: progress.update("pretraining units", epoch, config.epochs),
    )
    progress.update("pretraining units", config.epochs, config.epochs)  # it may have stopped early
    model.units.start_from(embeddings)
