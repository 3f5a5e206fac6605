"""The corpora that the benchmarks run on."""

import ast
import os
import random
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from treepiece import Node
from treepiece.data.reader import read_rows
from treepiece.trees.node import TreeBuilder


def topv2_folder() -> Path:
    """Return where TOPv2 is, or stop: a figure measured on other data would be another figure."""
    beside = Path(__file__).parents[2] / "shared" / "topv2"
    folder = Path(os.environ.get("TREEPIECE_TOPV2", beside))
    if not folder.is_dir():
        sys.exit(f"TOPv2 is not at {folder}: set TREEPIECE_TOPV2, or get it with `treepiece data topv2 --output DIR`")
    return folder


def topv2_skeletons(split: str = "train") -> list[Node]:
    """Return the skeletons of a split of TOPv2."""
    return [row.skeleton for row in read_rows(topv2_folder(), split=split)]


def standard_library_trees(seed: int = 0) -> Iterator[Node]:
    """Yield the syntax tree of each module of the standard library, in an order that depends on the seed alone."""
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in root.rglob("*.py") if not {"site-packages", "test", "tests"} & set(path.parts))
    random.Random(seed).shuffle(files)
    for path in files:
        try:
            yield syntax_tree(ast.parse(path.read_bytes()))
        except (SyntaxError, ValueError):
            continue  # a few modules hold broken code on purpose


def syntax_tree(root: ast.AST) -> Node:
    """Return a syntax tree with the types of its nodes as labels."""
    builder = TreeBuilder()
    stack: list[ast.AST | None] = [root]
    while stack:
        node = stack.pop()
        if node is None:
            builder.close()
            continue
        builder.open(type(node).__name__)
        stack.append(None)
        stack.extend(reversed(list(ast.iter_child_nodes(node))))
    assert builder.root is not None
    return builder.root
