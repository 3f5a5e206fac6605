"""The architecture: a folder imports only what stands above it, and `import treepiece` is light."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "treepiece"
LAYERS = [
    "errors",
    "options",
    "files",
    "bundle",
    "shipped",
    "trees",
    "tokenizer",
    "decoding",
    "text",
    "definition",
    "data",
    "evaluation",
    "models",
    "training",
    "ort",
    "runtime",
    "export",
    "jobs",
    "integrations",
    "serving",
    "cli",
]
OUTSIDE = {
    "errors": set(),
    "options": set(),
    "files": set(),
    "bundle": set(),
    "shipped": set(),
    "trees": set(),
    "tokenizer": {"numpy"},
    "decoding": {"numpy"},
    "text": {"tokenizers"},
    "definition": set(),
    "ort": {"onnxruntime"},
    "runtime": {"numpy"},
    "export": {"torch", "numpy", "onnx", "yaml"},
    "jobs": {"pyarrow", "ray", "numpy"},
    "integrations": {"spacy"},
    "models": {"torch", "transformers", "huggingface_hub", "safetensors"},
    "training": {"torch", "numpy", "lightning", "safetensors", "yaml"},
    "data": set(),
    "evaluation": {"numpy"},
    "serving": {"fastapi", "starlette", "pydantic", "uvicorn", "h11", "prometheus_client"},
    "cli": {"typer", "rich", "numpy"},
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module
            if node.module == "treepiece":
                yield from (f"treepiece.{name.name}" for name in node.names)
            else:
                yield node.module


FILES = [path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem in LAYERS]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_upwards_only(path):
    layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for module in imports(path):
        top, _, rest = module.partition(".")
        if top == "treepiece":
            assert LAYERS.index(rest.partition(".")[0]) <= LAYERS.index(layer), module
        else:
            assert top in sys.stdlib_module_names or top in OUTSIDE[layer], module


def test_import_loads_nothing_heavy():
    code = "import sys, treepiece; print(*{m.partition('.')[0] for m in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "lightning", "onnxruntime", "fastapi", "rich", "typer", "spacy"} & set(loaded)


def test_onnx_runtime_sends_nothing():
    code = "import os, treepiece.runtime.graphs; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    for given, expected in ({}, "1"), ({"ORT_DISABLE_TELEMETRY": "0"}, "0"):
        ran = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment | given
        )
        assert ran.stdout.strip() == expected


def test_files_are_small():
    long = {str(path): n for path in SOURCE.rglob("*.py") if (n := len(path.read_text("utf-8").splitlines())) > 300}
    assert not long
