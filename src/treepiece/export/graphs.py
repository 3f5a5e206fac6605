"""PyTorch modules as ONNX graphs."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
from onnx import ModelProto
from torch import Tensor, nn

from treepiece.ort import ort

Axes = Mapping[int, str]


@dataclass(frozen=True)
class Graph:
    """A module, an example of each of its inputs, the names of the axes that may have any size, and of the outputs."""

    module: nn.Module
    inputs: Mapping[str, tuple[Tensor, Axes]]
    outputs: Sequence[str]


def to_onnx(graph: Graph) -> ModelProto:
    """Return the graph of a module, with the operations that ONNX Runtime has fused into its own.

    Optimised once, here: opening a session is then a matter of reading. The fusions of this level are the same on
    every processor.
    """
    with _quietly(), torch.no_grad():
        program = torch.onnx.export(
            graph.module.eval(),
            tuple(example for example, _ in graph.inputs.values()),
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
            dynamic_shapes=[dict(axes) for _, axes in graph.inputs.values()],
            dynamo=True,
            verbose=False,
        )
    assert program is not None  # the exporter says None only where it writes a file itself
    return _optimise(program.model_proto)


def _optimise(model: ModelProto) -> ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.onnx"
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(path)
        options.log_severity_level = 3
        ort.InferenceSession(
            model.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            # On a few rows the fused operation takes twice as long as its two parts.
            disabled_optimizers=["SkipLayerNormFusion"],
        )
        return onnx.load(path)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep the exporter's remarks, which are about its own inside, off the screen."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
