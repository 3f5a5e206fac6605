"""ONNX Runtime, told to send nothing before it starts.

The official builds report how they are used to their maker, and keep an identifier of the machine in the home folder,
unless this variable is set when they are loaded. A parser sees what people type: it must not talk to anybody. Whoever
wants the reports sets the variable to 0. All of treepiece imports ONNX Runtime from here.
"""

from __future__ import annotations

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime as ort  # only after the variable is set

__all__ = ["ort"]
