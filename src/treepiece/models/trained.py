"""A trained model with everything that it needs to parse, and its folder on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, assert_never

import safetensors.torch
import torch
from safetensors import SafetensorError

from treepiece.bundle import (
    CONFIG,
    DECODING,
    DICTIONARY,
    SCOPE,
    SUBWORDS,
    TOKENIZER,
    TRAINING,
    WEIGHTS,
    Bundle,
    find_weights,
    read_bundle,
    write_bundle,
)
from treepiece.decoding.types import DecodingConfig
from treepiece.definition import (
    Definition,
    ModelKind,
    load_decoding,
    load_definition,
    load_dictionary,
    load_scope,
    load_subwords,
)
from treepiece.errors import BundleError
from treepiece.models.baselines import AutoregressiveModel, NonAutoregressiveModel
from treepiece.models.encoder import Encoder
from treepiece.models.treepiece_model import TreePieceModel
from treepiece.scope import ScopeClassifier
from treepiece.spelling import Dictionary
from treepiece.text import SubwordTokenizer
from treepiece.tokenizer.storage import vocabulary_files
from treepiece.trees.frame import Frame

ParserModel = TreePieceModel | AutoregressiveModel | NonAutoregressiveModel


def build_model(definition: Definition, encoder: Encoder) -> ParserModel:
    """Return the model with new weights on top of an encoder."""
    if definition.kind is ModelKind.TREEPIECE:
        return TreePieceModel(encoder, definition.unit_grammar(), definition.decoder, definition.extensions)
    if definition.kind is ModelKind.AR:
        return AutoregressiveModel(encoder, definition.token_grammar(), definition.decoder)
    if definition.kind is ModelKind.NAR:
        return NonAutoregressiveModel(encoder, definition.token_vocabulary(), definition.decoder)
    assert_never(definition.kind)


@dataclass
class TrainedModel:
    """A model, its definition, its subword tokenizer, metadata about its training, and the settings of decoding.

    `dictionary` has the words of all rows that it was trained on, for spelling correction. `scope` tells what the model
    was trained for; a baseline has none.
    """

    definition: Definition
    model: ParserModel
    subwords: SubwordTokenizer
    metadata: Mapping[str, Any] = field(default_factory=dict)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    dictionary: Dictionary | None = None
    scope: ScopeClassifier | None = None

    def parse(self, texts: Sequence[str]) -> list[Frame]:
        """Return the best frame of each text."""
        utterances = self.subwords.encode_batch(texts)
        parses = self.model.parse(utterances, self.decoding)
        return [
            Frame.from_chars(text, best.skeleton, [utterance.chars(span) for span in best.spans])
            for text, utterance, (best,) in zip(texts, utterances, parses, strict=True)
        ]


def save_model(folder: Path, trained: TrainedModel) -> None:
    """Write a bundle."""
    definition, encoder = trained.definition, trained.model.encoder
    config = {"model": definition.to_json(), "encoder": encoder.to_json(), "max_length": trained.subwords.max_length}
    files = {
        CONFIG: json.dumps(config, indent=1).encode(),
        DECODING: json.dumps(trained.decoding.to_json(), indent=1).encode(),
        TRAINING: json.dumps(trained.metadata, indent=1).encode(),
        SUBWORDS: trained.subwords.text.encode(),
        WEIGHTS: write_weights(trained.model),
    }
    if trained.dictionary is not None:
        files[DICTIONARY] = trained.dictionary.to_bytes()
    if trained.scope is not None:
        files[SCOPE] = trained.scope.to_bytes()
    if definition.tokenizer is not None:
        units = vocabulary_files(definition.tokenizer.units, definition.tokenizer.report)
        files |= {f"{TOKENIZER}/{name}": data for name, data in units.items()}
    write_bundle(folder, str(definition.kind), files)


def write_weights(model: ParserModel, dtype: torch.dtype = torch.float32) -> bytes:
    """Return the weights as safetensors, in the given float type; integer tensors stay unchanged."""
    state = model.state_dict()
    rounded = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in state.items()}
    return safetensors.torch.save({name: tensor.contiguous() for name, tensor in rounded.items()})


def load_model(folder: str | Path) -> TrainedModel:
    """Return the model in a bundle that has weights, ready to parse; `bundled` is the one that comes with treepiece."""
    bundle = read_bundle(find_weights(folder))
    definition = load_definition(bundle)
    encoder = Encoder.from_json(bundle.read_json(CONFIG)["encoder"])
    model = build_model(definition, encoder)
    _load_weights(model, bundle)
    subwords = load_subwords(bundle)
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    metadata, decoding = bundle.read_json(TRAINING), load_decoding(bundle)
    dictionary, scope = load_dictionary(bundle), load_scope(bundle)
    return TrainedModel(definition, model.eval(), subwords, metadata, decoding, dictionary, scope)


def _load_weights(model: ParserModel, bundle: Bundle) -> None:
    if WEIGHTS not in bundle.files:
        raise BundleError(
            f"{bundle.folder}: a model without {WEIGHTS}, for parsing only: give the folder that `treepiece train` "
            "wrote, or export that again with --weights half"
        )
    try:
        weights = safetensors.torch.load(bundle.read(WEIGHTS))
    except SafetensorError as error:
        raise BundleError(f"{bundle.folder / WEIGHTS}: damaged: {error}; copy or train the model again") from None
    # Half precision only saves space on disk; all computation is in single precision.
    weights = {name: tensor.to(torch.float32) for name, tensor in weights.items()}
    try:
        model.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise BundleError(f"{bundle.folder / WEIGHTS}: does not fit its {CONFIG}: {reason:.200}") from None
