"""What a model is, apart from its weights: its kind, its labels, what may stand below what, and its sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from treepiece.decoding.grammar import Pair, UnitGrammar, label_pairs
from treepiece.decoding.linear import LinearGrammar, LinearVocabulary
from treepiece.errors import BundleError, TreepieceError
from treepiece.models.ar import AutoregressiveModel
from treepiece.models.encoder import Encoder
from treepiece.models.kinds import ModelKind
from treepiece.models.layers import DecoderConfig
from treepiece.models.nar import NonAutoregressiveModel
from treepiece.models.treepiece import TreePieceModel
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.node import Node

ParserModel = TreePieceModel | AutoregressiveModel | NonAutoregressiveModel


@dataclass(frozen=True)
class Definition:
    """Everything that a model is built from beside its encoder; `tokenizer` is None for the baselines.

    `pairs` are the parent and child labels that training had, and `composed` tells whether unit embeddings are built
    from labels and shape.
    """

    kind: ModelKind
    labels: tuple[str, ...]
    pairs: frozenset[Pair]
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    composed: bool = False
    tokenizer: TreePieceTokenizer | None = None

    @classmethod
    def of_trees(
        cls,
        kind: ModelKind,
        skeletons: Iterable[Node],
        *,
        decoder: DecoderConfig,
        composed: bool = False,
        tokenizer: TreePieceTokenizer | None = None,
    ) -> Definition:
        """Return the definition of a model for trees like these."""
        pairs = label_pairs(skeletons)
        return cls(kind, tuple(sorted({child for _, child in pairs})), frozenset(pairs), decoder, composed, tokenizer)

    def build(self, encoder: Encoder) -> ParserModel:
        """Return the model with new weights on top of an encoder."""
        if self.kind is ModelKind.TREEPIECE:
            assert self.tokenizer is not None  # only the baselines do without
            # The span decoder reads two tokens a node, so half of its places is how many nodes a tree may have.
            grammar = UnitGrammar(self.tokenizer.units, self.pairs, budget=self.decoder.longest // 2)
            return TreePieceModel(encoder, grammar, self.decoder, composed=self.composed)
        vocabulary = LinearVocabulary(self.labels)
        if self.kind is ModelKind.AR:
            grammar_ = LinearGrammar(vocabulary, self.pairs, budget=self.decoder.longest)
            return AutoregressiveModel(encoder, grammar_, self.decoder)
        return NonAutoregressiveModel(encoder, vocabulary, self.decoder)

    def to_json(self) -> dict[str, Any]:
        """Return the definition without its tokenizer as a value that `json.dumps` can write."""
        pairs = sorted(self.pairs, key=lambda pair: (pair[0] or "", pair[1]))
        return {
            "kind": str(self.kind),
            "labels": list(self.labels),
            "pairs": [list(pair) for pair in pairs],
            "decoder": asdict(self.decoder),
            "composed": self.composed,
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
            )
        except TreepieceError as error:
            raise BundleError(f"the definition of the model is wrong: {error}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(f"the definition of the model is wrong: {type(error).__name__}: {error}") from None
