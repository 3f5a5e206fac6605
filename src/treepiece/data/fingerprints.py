"""Checksums of data: the rows of a run, and the skeletons of a model's training data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

from treepiece.data.rows import Row
from treepiece.trees.brackets import format_brackets
from treepiece.trees.node import Node


def fingerprint(rows: Iterable[Row]) -> str:
    """Return a checksum of rows, to check that a resumed run has the same data."""
    digest = hashlib.sha256()
    for row in rows:
        frame = row.frame
        text = "" if frame is None else f"{frame.utterance}\t{frame.spans}"
        digest.update(f"{text}\t{skeleton_digest(row.skeleton)}\n".encode(errors="replace"))
    return digest.hexdigest()


@lru_cache(maxsize=1 << 16)
def skeleton_digest(skeleton: Node) -> str:
    """Return a short checksum of a skeleton.

    >>> skeleton_digest(Node("IN:A"))
    '7cc77b3a862d'
    """
    return hashlib.sha256(format_brackets(skeleton, any_label=True).encode(errors="replace")).hexdigest()[:12]
