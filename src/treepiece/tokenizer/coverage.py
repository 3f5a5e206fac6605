"""Coverage: how many units a tokenizer needs per tree, and which trees it cannot encode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.node import Node


@dataclass(frozen=True)
class TokenizerScores:
    """Counts over trees; `units_per_tree` is None if no tree can be encoded.

    `unencodable_seen_labels` counts the unencodable trees all of whose labels are in the vocabulary.
    """

    trees: int
    base_units: int | None
    units: int
    units_per_tree: float | None
    unencodable: int
    unencodable_seen_labels: int
    roundtrip_failures: int

    def to_json(self) -> dict[str, float | int | None]:
        """Return the scores as a value that `json.dumps` accepts."""
        return asdict(self)


def evaluate_tokenizer(tokenizer: TreePieceTokenizer, trees: Iterable[Node]) -> TokenizerScores:
    """Return the scores of a tokenizer on trees; each distinct tree is encoded and decoded once."""
    counts = Counter(trees)
    encodings = dict(zip(counts, tokenizer.encode_batch(counts, missing_ok=True), strict=True))
    encoded = {tree: unit_ids for tree, unit_ids in encodings.items() if unit_ids is not None}
    n_encoded = sum(counts[tree] for tree in encoded)
    n_units = sum(counts[tree] * len(unit_ids) for tree, unit_ids in encoded.items())
    known = tokenizer.units.known_labels.keys()
    seen = [tree for tree in counts if tree not in encoded and {node.label for node in tree.nodes()} <= known]
    return TokenizerScores(
        trees=counts.total(),
        base_units=tokenizer.report.base_units if tokenizer.report else None,
        units=len(tokenizer.units),
        units_per_tree=n_units / n_encoded if n_encoded else None,
        unencodable=counts.total() - n_encoded,
        unencodable_seen_labels=sum(counts[tree] for tree in seen),
        roundtrip_failures=sum(counts[tree] for tree, ids in encoded.items() if tokenizer.decode(ids) != tree),
    )
