"""ONNX Runtime sessions for the graphs of a bundle.

The telemetry of ONNX Runtime is switched off before it is loaded. The official builds report their use to the maker,
and keep an identifier of the machine in the home folder, unless a variable is set when they are loaded. A parser reads
what people type, so it must not send anything. To allow the reports, set the variable to 0. All of treepiece imports
ONNX Runtime from here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from treepiece.bundle import Bundle
from treepiece.decoding.types import Hypothesis
from treepiece.errors import BundleError
from treepiece.scope import States

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime as ort  # after the variable is set

Array = npt.NDArray[Any]
Session: TypeAlias = ort.InferenceSession
Graphs: TypeAlias = dict[str, Session]
"""The open graphs of one precision, by name. Threads may share them."""

FOLDER = "onnx"
PARSE, UNITS, SPANS, PREFIX, SKELETON, RERANKER = "parse", "units", "spans", "prefix", "skeleton", "reranker"
"""The graphs of TreePiece; the non-autoregressive parser has only `PARSE`."""
ENCODE, STEP = "encode", "step"
"""The graphs of the autoregressive parser."""
LARGE = frozenset({PARSE, ENCODE})
"""The first graph of a parse. It runs on several threads; for the smaller graphs, waking threads costs more than it
saves, and their threads would compete with those of the first graph, which spin for a while."""


class Precision(StrEnum):
    """The precision of graphs: single precision, or 8-bit weights (smaller and faster)."""

    FLOAT = "float"
    INT8 = "int8"


def graph_file(precision: Precision, name: str) -> str:
    """Return the path of a graph in its bundle.

    >>> graph_file(Precision.INT8, "parse")
    'onnx/int8/parse.onnx'
    """
    return f"{FOLDER}/{precision}/{name}.onnx"


def graph_names(bundle: Bundle, precision: Precision) -> list[str]:
    """Return the names of the graphs that a bundle has in one precision."""
    return [Path(file).stem for file in bundle.files if file.startswith(f"{FOLDER}/{precision}/")]


def precisions_in(bundle: Bundle) -> list[Precision]:
    """Return the precisions that a bundle has graphs for, the fastest first."""
    return [precision for precision in (Precision.INT8, Precision.FLOAT) if graph_names(bundle, precision)]


class Decoded(NamedTuple):
    """The hypotheses for an utterance, and the encoder's states, if graphs return them. Shape: states (n, width)."""

    hypotheses: list[Hypothesis]
    states: States | None = None


class Input(NamedTuple):
    """An input of a graph: its type and axes. A named axis has any size, but the same for all inputs that name it."""

    type: Literal["int64", "float", "bool"]
    axes: tuple[int | str, ...]


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a graph. Export builds graphs from it, and the runtime refuses those that differ."""

    inputs: Mapping[str, Input]
    outputs: tuple[str, ...]

    def check(self, session: Session, path: Path) -> None:
        """Raise if a graph does not have this signature: it belongs to another model, or is another graph."""
        found = {one.name: (one.type, one.shape) for one in session.get_inputs()}
        outputs = tuple(one.name for one in session.get_outputs())
        if found.keys() != self.inputs.keys() or outputs != self.outputs:
            raise BundleError(
                f"{path}: not the graph that belongs here: its inputs and outputs are {', '.join(found)} -> "
                f"{', '.join(outputs)}, expected {', '.join(self.inputs)} -> {', '.join(self.outputs)}; "
                "export the model again"
            )
        for name, (kind, axes) in self.inputs.items():
            fits = [axis == size or isinstance(size, str) for size, axis in zip(axes, found[name][1], strict=False)]
            if found[name][0] != f"tensor({kind})" or len(fits) != len(found[name][1]) or not all(fits):
                raise BundleError(
                    f"{path}: a graph of another model: its input {name} is {found[name][0]} {found[name][1]}, "
                    f"expected tensor({kind}) {list(axes)}; export the model again"
                )


def open_session(graph: bytes, *, threads: int = 1, optimize_to: Path | None = None) -> Session:
    """Return a session for a graph that export has optimised, or optimise it now and write it to a file."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    disabled = []
    if optimize_to is not None:
        # The fusions of this level do not depend on the processor.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(optimize_to)
        # On a few rows the fused operation takes twice as long as its two parts.
        disabled = ["SkipLayerNormFusion"]
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled)


def open_graph(bundle: Bundle, precision: Precision, name: str, threads: int) -> Session:
    """Return a session for a graph of a bundle."""
    file = graph_file(precision, name)
    graph = bundle.read(file)
    try:
        return open_session(graph, threads=threads if name in LARGE else 1)
    except Exception as error:  # ONNX Runtime's errors have no narrower base class
        reason = " ".join(str(error).split())
        raise BundleError(
            f"{bundle.folder / file}: ONNX Runtime {ort.__version__} cannot open it: {reason:.200}"
        ) from None


def as_ids(rows: list[tuple[int, ...]]) -> npt.NDArray[np.int64]:
    """Return utterances of one length as an array."""
    return np.array(rows, np.int64)
