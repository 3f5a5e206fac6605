"""The definition of a model, apart from its weights: its kind, labels, pairs of parent and child labels, and sizes.

A bundle stores it in config.json and tokenizer/, next to the subword tokenizer and the settings of decoding. All of it
is checked when read: for a bundle from a faulty tool, the error names the file and the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from treepiece.bundle import CONFIG, DECODING, DICTIONARY, SCOPE, SUBWORDS, TOKENIZER, Bundle
from treepiece.checks import whole_number
from treepiece.decoding.linearization import TokenGrammar, TokenVocabulary
from treepiece.decoding.search import Pair, UnitGrammar, label_pairs
from treepiece.decoding.types import DecodingConfig
from treepiece.errors import BundleError, TreepieceError
from treepiece.scope import ScopeClassifier
from treepiece.spelling import Dictionary
from treepiece.text import SubwordTokenizer
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.node import Node


class ModelKind(StrEnum):
    """The kinds of parsers."""

    TREEPIECE = "treepiece"
    AR = "ar"
    NAR = "nar"


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of the decoders; their width is the encoder's. `max_length` is the number of positions of a decoder."""

    n_heads: int = 12
    max_length: int = 256

    __pydantic_config__ = {"extra": "forbid", "strict": True}  # noqa: RUF012  # it is part of recipes

    def __post_init__(self) -> None:
        whole_number("n_heads", self.n_heads, 1)
        whole_number("max_length", self.max_length, 4)


@dataclass(frozen=True)
class Extensions:
    """What a TreePiece model has beyond the paper; the baselines have none of it.

    With `placeholder_label` the unit decoder also reads the label above the placeholder that it fills. `compositional`
    embeddings share vectors between units, and `label_logits` come from the subwords (see `models.unit_embeddings`).
    A `reranker` scores whole frames (see `models.token_decoder`).
    """

    placeholder_label: bool = False
    compositional: bool = False
    label_logits: bool = False
    reranker: bool = False


@dataclass(frozen=True)
class Definition:
    """The definition of a model except for its encoder; `tokenizer` is None for the baselines.

    `pairs` are the parent and child labels of the training data.
    """

    kind: ModelKind
    labels: tuple[str, ...]
    pairs: frozenset[Pair]
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    tokenizer: TreePieceTokenizer | None = None
    extensions: Extensions = field(default_factory=Extensions)

    @classmethod
    def of_trees(
        cls,
        kind: ModelKind,
        skeletons: Iterable[Node],
        *,
        decoder: DecoderConfig,
        tokenizer: TreePieceTokenizer | None = None,
        extensions: Extensions | None = None,
    ) -> Definition:
        """Return the definition of a model for trees like these."""
        pairs = label_pairs(skeletons)
        labels = tuple(sorted({child for _, child in pairs}))
        return cls(kind, labels, frozenset(pairs), decoder, tokenizer, extensions or Extensions())

    def unit_grammar(self) -> UnitGrammar:
        """Return the grammar of a TreePiece model's units."""
        if self.tokenizer is None:
            raise BundleError(f"a model of the kind {self.kind} has no units; its bundle has no tokenizer")
        # The span decoder reads two tokens per node, so a tree has at most half as many nodes as it has positions.
        return UnitGrammar(self.tokenizer.units, self.pairs, budget=self.decoder.max_length // 2)

    def token_vocabulary(self) -> TokenVocabulary:
        """Return the token vocabulary of the baselines."""
        return TokenVocabulary(self.labels)

    def token_grammar(self) -> TokenGrammar:
        """Return the grammar of the autoregressive baseline's tokens."""
        return TokenGrammar(self.token_vocabulary(), self.pairs, budget=self.decoder.max_length)

    def to_json(self) -> dict[str, Any]:
        """Return the definition without its tokenizer as a value that `json.dumps` can write."""
        pairs = sorted(self.pairs, key=lambda pair: (pair[0] or "", pair[1]))
        return {
            "kind": str(self.kind),
            "labels": list(self.labels),
            "pairs": [list(pair) for pair in pairs],
            "decoder": asdict(self.decoder),
            "extensions": asdict(self.extensions),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], tokenizer: TreePieceTokenizer | None) -> Definition:
        """Return the definition that `to_json` wrote; raise `BundleError` with the name of a wrong key."""
        for name, is_valid in _CHECKS.items():
            if name not in value:
                raise BundleError(f"model.{name}: missing")
            if not is_valid(value[name]):
                raise BundleError(f"model.{name}: not what a model can have: {value[name]!r:.60}")
        for part, kind in (("decoder", DecoderConfig), ("extensions", Extensions)):
            known = {one.name for one in fields(kind)}
            for name in sorted(known ^ value[part].keys()):
                fault = "missing" if name in known else "not known: upgrade treepiece"
                raise BundleError(f"model.{part}.{name}: {fault}")
        pairs = frozenset((parent, child) for parent, child in value["pairs"])
        for label in {label for pair in pairs for label in pair} - {None, *value["labels"]}:
            raise BundleError(f"model.pairs: the label {label!r:.60} is not among model.labels")
        try:
            return cls(
                ModelKind(value["kind"]),
                tuple(value["labels"]),
                pairs,
                DecoderConfig(**value["decoder"]),
                tokenizer,
                Extensions(**value["extensions"]),
            )
        except (TreepieceError, TypeError) as error:
            raise BundleError(f"model.decoder: {error}") from None


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, list) and len(value) == 2 and isinstance(value[0], str | None) and isinstance(value[1], str)
    )


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "kind": lambda value: value in list(ModelKind),
    "labels": lambda value: isinstance(value, list) and bool(value) and all(isinstance(label, str) for label in value),
    "pairs": lambda value: isinstance(value, list) and all(map(_is_pair, value)),
    "decoder": lambda value: isinstance(value, dict),
    "extensions": lambda value: isinstance(value, dict) and all(isinstance(one, bool) for one in value.values()),
}


def load_definition(bundle: Bundle) -> Definition:
    """Return the definition of a bundle's model."""
    config = bundle.read_json(CONFIG)
    if not isinstance(config.get("model"), dict):
        raise BundleError(f"{bundle.folder / CONFIG}: model: missing; copy or export the model again")
    tokenizer = None
    if config["model"].get("kind") == ModelKind.TREEPIECE:
        tokenizer = TreePieceTokenizer.load(bundle.folder / TOKENIZER)
    with naming_file(bundle, CONFIG):
        return Definition.from_json(config["model"], tokenizer)


def load_subwords(bundle: Bundle) -> SubwordTokenizer:
    """Return the subword tokenizer of a bundle."""
    max_length, n_ids = read_number(bundle, "max_length", least=3), read_number(bundle, "encoder", "vocab_size")
    with naming_file(bundle, SUBWORDS):
        return SubwordTokenizer(bundle.read(SUBWORDS).decode(errors="replace"), max_length=max_length, n_ids=n_ids)


def load_dictionary(bundle: Bundle) -> Dictionary | None:
    """Return the words of the training rows of a bundle; None if it has none, so that spelling is not corrected."""
    if DICTIONARY not in bundle.files:
        return None
    with naming_file(bundle, DICTIONARY):
        return Dictionary.from_bytes(bundle.read(DICTIONARY))


def load_scope(bundle: Bundle) -> ScopeClassifier | None:
    """Return the classifier of scope of a bundle; None if it has none, so that results do not tell."""
    if SCOPE not in bundle.files:
        return None
    width = read_number(bundle, "encoder", "hidden_size")
    with naming_file(bundle, SCOPE):
        return ScopeClassifier.from_bytes(bundle.read(SCOPE), width)


def read_number(bundle: Bundle, *path: str, least: int = 1) -> int:
    """Return the integer in config.json at a path of keys."""
    value: Any = bundle.read_json(CONFIG)
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if type(value) is not int or value < least:
        name = ".".join(path)
        raise BundleError(
            f"{bundle.folder / CONFIG}: {name}: expected a whole number, {least} or more, found {value!r:.40}; "
            "export or train the model again"
        )
    return value


def load_decoding(bundle: Bundle) -> DecodingConfig:
    """Return the settings of decoding of a bundle."""
    with naming_file(bundle, DECODING):
        return DecodingConfig.from_json(bundle.read_json(DECODING))


@contextmanager
def naming_file(bundle: Bundle, name: str) -> Iterator[None]:
    """Add the name of a file before an error in its contents, and a remedy after it."""
    try:
        yield
    except TreepieceError as error:
        if str(error).startswith(str(bundle.folder)):
            raise
        raise BundleError(f"{bundle.folder / name}: {error}; export or train the model again") from None
