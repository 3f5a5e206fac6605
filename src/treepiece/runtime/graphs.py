"""The graphs of a bundle as ONNX Runtime sessions."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from treepiece.bundle import Bundle
from treepiece.errors import BundleError
from treepiece.ort import ort

Array = npt.NDArray[Any]

FOLDER = "onnx"
PARSE, UNITS, SPANS, PREFIX, SKELETON, JUDGE = "parse", "units", "spans", "prefix", "skeleton", "judge"
"""The graphs of TreePiece; the non-autoregressive parser has `PARSE` alone."""
ENCODE, STEP = "encode", "step"
"""The graphs of the autoregressive parser."""
_LARGE = frozenset({PARSE, ENCODE})
"""The first graph of a parse, whose runs are shared among threads. For the others, waking threads takes longer than it
saves; and a second graph with threads of its own is in the way of the first, whose threads go on looking for work."""


class Precision(StrEnum):
    """How numbers are kept: in single precision, or weights in 8 bits (smaller and faster)."""

    FLOAT = "float"
    INT8 = "int8"


def graph_file(precision: Precision, name: str) -> str:
    """Return where a bundle keeps a graph.

    >>> graph_file(Precision.INT8, "parse")
    'onnx/int8/parse.onnx'
    """
    return f"{FOLDER}/{precision}/{name}.onnx"


def precisions_in(bundle: Bundle) -> list[Precision]:
    """Return the precisions that a bundle has graphs for, the fastest first."""
    return [
        precision
        for precision in (Precision.INT8, Precision.FLOAT)
        if any(name.startswith(f"{FOLDER}/{precision}/") for name in bundle.files)
    ]


class Graphs:
    """The graphs of one precision; each is opened when it is first run. Threads may share it."""

    def __init__(self, bundle: Bundle, precision: Precision, *, threads: int) -> None:
        self.bundle = bundle
        self.precision = precision
        self.threads = threads
        self._sessions: dict[str, ort.InferenceSession] = {}
        self._lock = threading.Lock()

    def run(self, name: str, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs of a graph."""
        session = self._sessions.get(name) or self.open(name)
        outputs: list[Array] = session.run(None, inputs)
        return outputs

    def open(self, name: str) -> ort.InferenceSession:
        """Open a graph, if it is not open yet."""
        with self._lock:
            if name not in self._sessions:
                file = graph_file(self.precision, name)
                threads = self.threads if name in _LARGE else 1
                self._sessions[name] = open_session(self.bundle.read(file), threads, str(self.bundle.folder / file))
            return self._sessions[name]

    def open_all(self) -> None:
        """Open every graph, so that nothing has to be read later."""
        start = graph_file(self.precision, "").removesuffix(".onnx")
        for file in self.bundle.files:
            if file.startswith(start):
                self.open(file.removeprefix(start).removesuffix(".onnx"))


def open_session(graph: bytes, threads: int, path: str) -> ort.InferenceSession:
    """Return a session for a graph that was optimised when it was exported."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's own errors have no base that is narrower
        reason = " ".join(str(error).split())
        raise BundleError(f"{path}: ONNX Runtime {ort.__version__} cannot open it: {reason:.200}") from None


def as_ids(rows: list[tuple[int, ...]]) -> npt.NDArray[np.int64]:
    """Return utterances of one length as an array."""
    return np.array(rows, np.int64)
