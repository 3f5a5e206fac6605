"""Parsers of trained bundles, in each way to search that is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from treepiece.bundle import Bundle, find_graphs, read_bundle
from treepiece.checks import one_of
from treepiece.decoding.types import DecodingConfig
from treepiece.definition import ModelKind
from treepiece.errors import BundleError, OptionError
from treepiece.runtime.parser import Parser
from treepiece.runtime.sessions import Precision, precisions_in

GREEDY, DEFAULT, ALWAYS, PARALLEL = "greedy", "default", "always", "parallel"
_THRESHOLDS = {GREEDY: 0.0, ALWAYS: 1.0}


def decodings(kind: ModelKind, config: DecodingConfig, *, has_reranker: bool) -> dict[str, DecodingConfig]:
    """Return the ways to search that a model has, by name: the first is what the paper does.

    greedy     never reranks
    default    as the bundle says: reranks where the greedy parse is not probable enough
    always     reranks every parse
    """
    if kind is not ModelKind.TREEPIECE:
        return {PARALLEL if kind is ModelKind.NAR else GREEDY: config}
    names = (GREEDY, DEFAULT, ALWAYS) if has_reranker else (GREEDY,)
    return {name: replace(config, rerank_threshold=_THRESHOLDS.get(name, config.rerank_threshold)) for name in names}


def load_parsers(folder: str | Path, precision: Precision | None, threads: int | None) -> dict[str, Parser]:
    """Return a parser for each way to search; none shares what it caches with another."""
    first = Parser(folder, precision=precision, threads=threads)
    ways = decodings(first.definition.kind, first.decoding, has_reranker=first.definition.extensions.reranker)
    return {
        name: Parser(folder, precision=precision, threads=threads, decoding=config) for name, config in ways.items()
    }


def read_bundles(given: Sequence[str]) -> dict[ModelKind, Bundle]:
    """Return the bundles that KIND=DIR texts name; raise if one is of another kind than it is said to be."""
    bundles: dict[ModelKind, Bundle] = {}
    for text in given:
        name, _, folder = text.partition("=")
        if not folder:
            raise OptionError(f"a bundle is given as KIND=DIR, such as treepiece=DIR, got {text!r}")
        kind = one_of("the kind of a bundle", name, ModelKind)
        if kind in bundles:
            raise OptionError(f"{text}: there is a bundle for {kind} already, {bundles[kind].folder}: give one of each")
        bundle = read_bundle(find_graphs(folder), check=False)
        if bundle.kind != kind:
            raise BundleError(
                f"{folder}: a bundle with a model of kind {bundle.kind!r}, expected {kind.value!r}: "
                f"give one that `treepiece train --kind {kind}` has trained, or say {bundle.kind}={folder}"
            )
        if not precisions_in(bundle):
            raise BundleError(f"{folder}: a trained model without graphs: export it with `treepiece export`")
        bundles[kind] = bundle
    return bundles
