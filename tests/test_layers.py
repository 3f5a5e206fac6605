"""The architecture: what each folder may import, one name for one thing, and tests that mirror it."""

import ast
import os
import subprocess
import sys
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import treepiece

SOURCE = Path(treepiece.__file__).parent
TESTS = Path(__file__).parent
FILES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}

LAYERS = {
    "trees": set(),
    "tokenizer": {"numpy"},
    "decoding": {"numpy"},
    "evaluation": {"numpy"},
    "data": {"yaml"},
    "checking": set(),
    "models": {"numpy", "torch", "transformers", "huggingface_hub", "safetensors"},
    "training": {"torch", "numpy", "lightning", "safetensors", "yaml", "pydantic", "pydantic_core"},
    "runtime": {"numpy", "onnxruntime"},
    "export": {"torch", "numpy", "onnx", "yaml"},
    "jobs": {"pyarrow", "ray", "numpy"},
    "integrations": {"spacy"},
    "serving": {"fastapi", "starlette", "pydantic", "uvicorn", "h11", "prometheus_client"},
    "cli": {"typer", "rich", "numpy"},
}
"""The folders, each before those that may import it, and the packages that they use besides the standard library."""
TOP_LEVEL = {"text": {"tokenizers"}, "spelling": {"rapidfuzz"}, "scope": {"numpy"}}
"""The packages that the modules beside the folders use; their layer follows from what they import."""
NEEDS_TORCH = {"models", "training", "export"}
ENTRY_POINTS = {"__init__", "__main__"}
"""They stand above all layers and import what they need when it is asked for."""


def layer_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree):
    """Yield the modules that a file imports anywhere, also within functions and for type checking."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            if node.module == "treepiece":
                yield from (f"treepiece.{name.name}" for name in node.names)
            else:
                yield node.module


def internal_imports():
    """Return the folders and top-level modules that each folder and each top-level module imports."""
    graph = defaultdict(set)
    for path, tree in FILES.items():
        layer = layer_of(path)
        if layer not in ENTRY_POINTS:
            graph[layer] |= {name.split(".")[1] for name in imports(tree) if name.startswith("treepiece.")} - {layer}
    return graph


def reachable(graph, start):
    found, todo = set(), [start]
    while todo:
        new = graph[todo.pop()] - found
        found |= new
        todo += new
    return found


def test_no_import_cycles():
    """Folders, and the modules beside them, form a hierarchy."""
    graph = internal_imports()
    assert set(LAYERS) == {layer for layer in graph if (SOURCE / layer).is_dir()}
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("layer", LAYERS)
def test_a_folder_imports_only_what_comes_before_it(layer):
    order = list(LAYERS)
    before = order[: order.index(layer)]
    used = reachable(internal_imports(), layer) & set(LAYERS)
    assert used <= set(before)
    if layer not in NEEDS_TORCH | {"cli"}:
        assert not used & NEEDS_TORCH, "PyTorch is for training and export only"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_packages_are_those_of_the_folder(path):
    layer = layer_of(path)
    allowed = LAYERS[layer] if layer in LAYERS else TOP_LEVEL.get(layer, set())
    packages = {module.partition(".")[0] for module in imports(FILES[path])} - {"treepiece"}
    assert packages - sys.stdlib_module_names <= allowed


def test_one_file_imports_onnx_runtime():
    """It switches telemetry off first."""
    importers = [path for path, tree in FILES.items() if "onnxruntime" in set(imports(tree))]
    assert importers == [SOURCE / "runtime" / "sessions.py"]


def test_tests_mirror_the_source():
    """A folder of tests is that of the source with its name, or of the part of the repository that is named here."""
    folders = {path.parent.name for path in TESTS.glob("*/test_*.py")}
    assert set(LAYERS) <= folders
    assert folders - set(LAYERS) <= {"deploy", "experiments", "page"}, "page is serving/page"


def duplicates(names):
    places = defaultdict(list)
    for name, path in names:
        places[name].append(str(path.relative_to(SOURCE)))
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_no_two_files_have_one_name():
    assert not duplicates((path.name, path) for path in FILES if path.name != "__init__.py")


def test_no_two_public_classes_have_one_name():
    classes = (
        (node.name, path)
        for path, tree in FILES.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not duplicates(classes)


def test_onnx_runtime_sends_nothing():
    code = "import os, treepiece.runtime.sessions; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    for given, expected in ({}, "1"), ({"ORT_DISABLE_TELEMETRY": "0"}, "0"):
        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment | given
        )
        assert ran.stdout.strip() == expected
