"""What `/v1/model` says: the model that is served, how good it is, and what the server takes."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version

from treepiece.bundle import VERSION
from treepiece.runtime.parser import MOST_READINGS, Parser
from treepiece.serving.answering import READING
from treepiece.serving.settings import Settings


def fingerprint(parser: Parser) -> str:
    """Return what tells answers apart: it is made from the checksums of all files of the bundle, and the precision."""
    value = [parser.precision, sorted(parser.bundle.files.items())]
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]


def describe(parser: Parser, settings: Settings) -> dict[str, object]:
    """Return the description as a value that `json.dumps` can write."""
    tokenizer = parser.definition.tokenizer
    quality = parser.facts.get("quality", {}).get(parser.precision, {})
    return {
        "name": parser.bundle.folder.resolve().name,
        "kind": str(parser.definition.kind),
        "version": fingerprint(parser),
        "format": VERSION,
        "treepiece": version("treepiece"),
        "precision": str(parser.precision),
        "threads": parser.threads,
        "data": str(parser.facts.get("data", "")),
        "scores": {name: value for name, value in quality.items() if isinstance(value, int | float)},
        "labels": list(parser.definition.labels),
        "units": None if tokenizer is None else len(tokenizer.units),
        "limits": {
            "bytes": settings.most_bytes,
            "texts": settings.most_texts,
            "characters": settings.most_characters,
            "subwords": parser.subwords.longest,
            "nbest": MOST_READINGS,
            "readings": settings.most_readings,
            "characters_of_a_reading": READING,
            "queue": settings.queue,
            "connections": settings.connections,
            "batch_size": settings.batch_size,
            "batch_wait_milliseconds": settings.batch_wait,
            "body_seconds": settings.body_seconds,
            "answer_seconds": settings.answer_seconds,
        },
    }
