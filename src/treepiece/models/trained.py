"""A trained model with all that it needs to parse, and its folder on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError

from treepiece.bundle import CONFIG, SUBWORDS, TOKENIZER, TRAINING, WEIGHTS, Bundle, read_bundle, write_bundle
from treepiece.definition import Definition
from treepiece.errors import BundleError
from treepiece.models.build import ParserModel, build_model
from treepiece.models.encoder import Encoder
from treepiece.models.treepiece import TreePieceModel
from treepiece.shipped import find_weights
from treepiece.text import SubwordTokenizer
from treepiece.tokenizer.storage import vocabulary_files
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.frame import Frame


@dataclass
class TrainedModel:
    """A model, what it is, how it reads text, and facts about its training."""

    definition: Definition
    model: ParserModel
    subwords: SubwordTokenizer
    facts: Mapping[str, Any] = field(default_factory=dict)

    def parse(self, texts: Sequence[str], *, beam: int = 1) -> list[Frame]:
        """Return the most probable frame of each text."""
        utterances = self.subwords.encode_batch(texts)
        frames = []
        for text, utterance, (best, *_) in zip(texts, utterances, self.model.parse(utterances, beam=beam), strict=True):
            frames.append(Frame.from_chars(text, best.skeleton, [utterance.chars(span) for span in best.spans]))
        return frames


def save_model(folder: Path, trained: TrainedModel) -> None:
    """Write a bundle."""
    definition, encoder = trained.definition, trained.model.encoder
    config = {"model": definition.to_json(), "encoder": encoder.to_json()}
    files = {
        CONFIG: json.dumps(config, indent=1).encode(),
        TRAINING: json.dumps(trained.facts, indent=1).encode(),
        SUBWORDS: trained.subwords.text.encode(),
        WEIGHTS: write_weights(trained.model),
    }
    if definition.tokenizer is not None:
        units = vocabulary_files(definition.tokenizer.units, definition.tokenizer.report)
        files |= {f"{TOKENIZER}/{name}": data for name, data in units.items()}
    write_bundle(folder, str(definition.kind), files)


def write_weights(model: ParserModel, dtype: torch.dtype = torch.float32) -> bytes:
    """Return the weights of a model as safetensors, rounded to a type; what are no fractions stay as they are."""
    state = model.state_dict()
    rounded = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in state.items()}
    return safetensors.torch.save({name: tensor.contiguous() for name, tensor in rounded.items()})


def load_model(folder: str | Path) -> TrainedModel:
    """Return the model in a bundle that has weights, ready to parse; `bundled` is the one that comes with treepiece."""
    bundle = read_bundle(find_weights(folder))
    config = bundle.read_json(CONFIG)
    has_units = any(name.startswith(f"{TOKENIZER}/") for name in bundle.files)
    tokenizer = TreePieceTokenizer.load(bundle.folder / TOKENIZER) if has_units else None
    if not isinstance(config.get("model"), dict) or not isinstance(config.get("encoder"), dict):
        raise BundleError(f"{bundle.folder / CONFIG}: damaged: 'model' and 'encoder' are missing; train again")
    definition = Definition.from_json(config["model"], tokenizer)
    encoder = Encoder.from_json(config["encoder"])
    model = build_model(definition, encoder)
    _load_weights(model, bundle)
    subwords = SubwordTokenizer(bundle.read(SUBWORDS).decode(), longest=encoder.longest)
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    return TrainedModel(definition, model.eval(), subwords, bundle.read_json(TRAINING))


def _load_weights(model: ParserModel, bundle: Bundle) -> None:
    if WEIGHTS not in bundle.files:
        raise BundleError(
            f"{bundle.folder}: a model without {WEIGHTS}, to parse with only: give the folder that `treepiece train` "
            "wrote, or export that again with --weights half"
        )
    try:
        weights = safetensors.torch.load(bundle.read(WEIGHTS))
    except SafetensorError as error:
        raise BundleError(f"{bundle.folder / WEIGHTS}: damaged: {error}; copy or train the model again") from None
    # Half precision saves space on disk; computation is in single precision.
    weights = {name: tensor.to(torch.float32) for name, tensor in weights.items()}
    if isinstance(model, TreePieceModel):
        weights.setdefault("sure", model.sure)  # models of before have none of their own
    try:
        model.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise BundleError(f"{bundle.folder / WEIGHTS}: does not fit its {CONFIG}: {reason:.200}") from None
