"""What a model is, apart from its weights: its kind, its labels, what may stand below what, and its sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from treepiece.decoding.grammar import Pair, UnitGrammar, label_pairs
from treepiece.decoding.linear import LinearGrammar, LinearVocabulary
from treepiece.errors import BundleError, TreepieceError
from treepiece.options import fraction, whole_number
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.node import Node


class ModelKind(StrEnum):
    """Which of the three parsers."""

    TREEPIECE = "treepiece"
    AR = "ar"
    NAR = "nar"


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of the decoders; their width is the encoder's. `longest` is how many places a decoder has."""

    n_heads: int = 12
    dropout: float = 0.1
    longest: int = 256

    def __post_init__(self) -> None:
        whole_number("n_heads", self.n_heads, 1)
        whole_number("longest", self.longest, 4)
        fraction("dropout", self.dropout)


@dataclass(frozen=True)
class Definition:
    """Everything that a model is built from beside its encoder; `tokenizer` is None for the baselines.

    `pairs` are the parent and child labels that training had, `composed` tells whether unit embeddings are built from
    labels and shape, `ranked` whether there is a ranker for the skeletons of a beam, `judged` whether there is a judge
    for its whole frames, and `hinted` whether words hint at labels.
    """

    kind: ModelKind
    labels: tuple[str, ...]
    pairs: frozenset[Pair]
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    composed: bool = False
    tokenizer: TreePieceTokenizer | None = None
    ranked: bool = False
    judged: bool = False
    hinted: bool = False

    @classmethod
    def of_trees(
        cls,
        kind: ModelKind,
        skeletons: Iterable[Node],
        *,
        decoder: DecoderConfig,
        composed: bool = False,
        tokenizer: TreePieceTokenizer | None = None,
        ranked: bool = False,
        judged: bool = False,
        hinted: bool = False,
    ) -> Definition:
        """Return the definition of a model for trees like these."""
        pairs = label_pairs(skeletons)
        labels = tuple(sorted({child for _, child in pairs}))
        return cls(kind, labels, frozenset(pairs), decoder, composed, tokenizer, ranked, judged, hinted)

    def unit_grammar(self) -> UnitGrammar:
        """Return what the units of a TreePiece model keep to."""
        if self.tokenizer is None:
            raise BundleError(f"a model of the kind {self.kind} has no units; its bundle has no tokenizer")
        # The span decoder reads two tokens a node, so half of its places is how many nodes a tree may have.
        return UnitGrammar(self.tokenizer.units, self.pairs, budget=self.decoder.longest // 2)

    def linear_vocabulary(self) -> LinearVocabulary:
        """Return the tokens of the baselines."""
        return LinearVocabulary(self.labels)

    def linear_grammar(self) -> LinearGrammar:
        """Return what the tokens of the autoregressive baseline keep to."""
        return LinearGrammar(self.linear_vocabulary(), self.pairs, budget=self.decoder.longest)

    def to_json(self) -> dict[str, Any]:
        """Return the definition without its tokenizer as a value that `json.dumps` can write."""
        pairs = sorted(self.pairs, key=lambda pair: (pair[0] or "", pair[1]))
        return {
            "kind": str(self.kind),
            "labels": list(self.labels),
            "pairs": [list(pair) for pair in pairs],
            "decoder": asdict(self.decoder),
            "composed": self.composed,
            "ranked": self.ranked,
            "judged": self.judged,
            "hinted": self.hinted,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], tokenizer: TreePieceTokenizer | None) -> Definition:
        """Return the definition that `to_json` wrote."""
        try:
            return cls(
                ModelKind(value["kind"]),
                tuple(value["labels"]),
                frozenset((parent, child) for parent, child in value["pairs"]),
                DecoderConfig(**value["decoder"]),
                bool(value["composed"]),
                tokenizer,
                *(bool(value.get(name, False)) for name in ("ranked", "judged", "hinted")),  # older bundles do not say
            )
        except TreepieceError as error:
            raise BundleError(f"the definition of the model is wrong: {error}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(f"the definition of the model is wrong: {type(error).__name__}: {error}") from None
