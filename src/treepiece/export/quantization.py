"""Graphs with 8-bit weights.

Each product with constant weights becomes one `DynamicQuantizeMatMul`: integer weights with one scale per column, and
inputs that are rounded to 8 bits at run time. A table of embeddings has one scale per row.

Weights use 7 of the 8 bits. Processors without VNNI add pairs of products in 16 bits, which 8-bit weights can overflow:
answers would be worse, and would depend on the processor. With 7 bits that cannot happen.

Activations are smoothed first, as in SmoothQuant. One scale serves a whole input, so a single channel that is twenty
times as large as the others costs them four of their eight bits. Dividing that channel by a number and multiplying the
weights that read it by the same number changes nothing in exact arithmetic, and gives the others their bits back.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from treepiece.runtime.sessions import open_session

Floats = npt.NDArray[np.float32]
Feeds = Mapping[str, npt.NDArray[np.generic]]

_LARGE = 6.0
"""A channel is an outlier if its maximum is more than this many times the median over all channels."""


def smooth_activations(model: ModelProto, examples: Sequence[Feeds]) -> ModelProto:
    """Return an equivalent graph with smaller inputs to its products; the given one is not changed.

    The examples show how large inputs get.
    """
    result = copy.deepcopy(model)
    weights = {tensor.name: tensor for tensor in result.graph.initializer}
    products = [node for node in result.graph.node if _is_product(node, weights)]
    largest = channel_maxima(model, [node.input[0] for node in products], examples)
    scales = {name: factors for name, values in largest.items() if (factors := outlier_factors(values)) is not None}
    nodes: list[NodeProto] = []
    made: set[str] = set()  # products of one input share its division
    for node in result.graph.node:
        if _is_product(node, weights) and node.input[0] in scales:
            source, tensor = node.input[0], weights[node.input[1]]
            smoothed, factors = f"{source}.smoothed", scales[source]
            scaled = numpy_helper.to_array(tensor) * (factors if _is_transposed(node) else factors[:, np.newaxis])
            tensor.CopyFrom(numpy_helper.from_array(scaled.astype(np.float32), tensor.name))
            node.input[0] = smoothed
            if smoothed not in made:
                made.add(smoothed)
                result.graph.initializer.append(numpy_helper.from_array(1 / factors, f"{smoothed}.by"))
                nodes.append(helper.make_node("Mul", [source, f"{smoothed}.by"], [smoothed]))
        nodes.append(node)
    _replace_nodes(result.graph, nodes)
    return result


def outlier_factors(largest: Floats) -> Floats | None:
    """Return the factor that each channel is divided by, given its maximum; None if there is no outlier.

    >>> outlier_factors(np.array([1, 1, 24], np.float32)).tolist()
    [1.0, 1.0, 4.0]
    """
    limit = _LARGE * float(np.median(largest))
    if limit == 0 or largest.max() <= limit:
        return None
    factors: Floats = np.maximum(1, largest / limit).astype(np.float32)
    return factors


def channel_maxima(model: ModelProto, names: Iterable[str], examples: Sequence[Feeds]) -> dict[str, Floats]:
    """Return the largest absolute value of each channel (the last axis) of inner values of a graph."""
    open_model = copy.deepcopy(model)
    outputs = {output.name for output in model.graph.output}
    wanted = sorted(set(names))
    open_model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in wanted if name not in outputs)
    session = open_session(open_model.SerializeToString())
    largest: dict[str, Floats] = {}
    for feeds in examples:
        for name, value in zip(wanted, session.run(wanted, feeds), strict=True):
            seen = np.abs(value).reshape(-1, value.shape[-1]).max(axis=0)
            largest[name] = np.maximum(largest[name], seen) if name in largest else seen
    return largest


def _is_product(node: NodeProto, weights: Mapping[str, TensorProto]) -> bool:
    return node.op_type in ("MatMul", "Gemm") and node.input[1] in weights and len(weights[node.input[1]].dims) == 2


def _is_transposed(node: NodeProto) -> bool:
    return any(option.name == "transB" and option.i for option in node.attribute)


def _replace_nodes(graph: GraphProto, nodes: Sequence[NodeProto]) -> None:
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)


_WEIGHT_LIMIT = 64
_TABLE_LIMIT = 127
_SMALLEST_TABLE = 1 << 19
"""Smaller tables are not quantized: that would save little."""

Bytes = npt.NDArray[np.int8]


def quantize(model: ModelProto) -> ModelProto:
    """Return the graph with 8-bit products and tables; the given one is not changed."""
    result = copy.deepcopy(model)
    graph = _Rewriter(result)
    for node in list(result.graph.node):
        if node.op_type in ("MatMul", "Gemm"):
            graph.quantize_product(node)
        elif node.op_type == "Gather":
            graph.quantize_table(node)
    graph.finish()
    if not any(opset.domain == "com.microsoft" for opset in result.opset_import):
        result.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return result


def round_columns(weights: Floats, limit: int) -> tuple[Bytes, Floats]:
    """Return integers and a scale for each column, whose product is approximately `weights`.

    >>> numbers, scales = round_columns(np.array([[1.0, 0.0], [-0.5, 0.0]], np.float32), 64)
    >>> numbers.tolist(), scales.tolist()
    ([[64, 0], [-32, 0]], [0.015625, 1.0])
    """
    largest = np.abs(weights).max(axis=0)
    scales = np.where(largest > 0, largest / limit, 1.0).astype(np.float32)
    return np.rint(weights / scales).astype(np.int8), scales


class _Rewriter:
    """Replaces nodes of a graph and the constants that they read."""

    def __init__(self, model: ModelProto) -> None:
        self.graph = model.graph
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.uses = Counter(name for node in model.graph.node for name in node.input)
        self.readers = {name: node for node in model.graph.node for name in node.input}
        self.outputs = {output.name for output in model.graph.output}
        self.replaced: dict[int, list[NodeProto]] = {}

    def quantize_product(self, node: NodeProto) -> None:
        """Replace a product with a constant matrix, and the bias that is added to it, by one node."""
        weight = self._matrix(node)
        if weight is None:
            return
        numbers, scales = round_columns(weight, _WEIGHT_LIMIT)
        bias, output = self._bias(node)
        name = node.input[1]
        inputs = [
            node.input[0],
            self._add(f"{name}.int8", numbers),
            self._add(f"{name}.scale", scales),
            self._add(f"{name}.zero", np.zeros(len(scales), np.int8)),
            bias,
        ]
        self.replaced[id(node)] = [
            helper.make_node("DynamicQuantizeMatMul", inputs, [output], f"{node.name}.int8", domain="com.microsoft")
        ]

    def _matrix(self, node: NodeProto) -> Floats | None:
        """Return the constant second factor, as columns; None if there is none."""
        weight = self._constant(node.input[1])
        options = {option.name: helper.get_attribute_value(option) for option in node.attribute}
        is_plain = options.get("alpha", 1.0) == options.get("beta", 1.0) == 1.0 and not options.get("transA", 0)
        if weight is None or not is_plain:
            return None
        return np.ascontiguousarray(weight.T if options.get("transB", 0) else weight)

    def _bias(self, node: NodeProto) -> tuple[str, str]:
        """Return the bias of a product ('' if none) and the name of the sum; an addition that follows is merged."""
        if node.op_type == "Gemm":
            return node.input[2] if len(node.input) > 2 else "", node.output[0]
        product = node.output[0]
        reader = self.readers.get(product)
        if self.uses[product] != 1 or reader is None or reader.op_type != "Add" or product in self.outputs:
            return "", product
        other = next((name for name in reader.input if name != product), product)
        tensor = self.constants.get(other)
        if tensor is None or len(tensor.dims) != 1:
            return "", product
        self.replaced[id(reader)] = []
        return other, reader.output[0]

    def quantize_table(self, node: NodeProto) -> None:
        """Replace the rows of a large table by rows of 8-bit numbers, each with its own scale."""
        values = self._constant(node.input[0])
        if values is None or values.size < _SMALLEST_TABLE:
            return
        numbers, scales = round_columns(np.ascontiguousarray(values.T), _TABLE_LIMIT)
        table, name = node.input[0], node.output[0]
        rows = self._add(f"{table}.int8", np.ascontiguousarray(numbers.T))
        row_scales = self._add(f"{table}.scale", scales.reshape(-1, 1))
        self.replaced[id(node)] = [
            helper.make_node("Gather", [rows, node.input[1]], [f"{name}.int8"]),
            helper.make_node("Gather", [row_scales, node.input[1]], [f"{name}.scale"]),
            helper.make_node("Cast", [f"{name}.int8"], [f"{name}.float"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{name}.float", f"{name}.scale"], [name]),
        ]

    def _constant(self, name: str) -> Floats | None:
        """Return a constant matrix of floats; None if the value of this name is none."""
        tensor = self.constants.get(name)
        if tensor is None or len(tensor.dims) != 2 or tensor.data_type != TensorProto.FLOAT:
            return None
        return numpy_helper.to_array(tensor)

    def _add(self, name: str, value: npt.NDArray[np.generic]) -> str:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(value, name)
        return name

    def finish(self) -> None:
        """Put the new nodes in place of the old, and drop constants that are no longer used."""
        nodes: list[NodeProto] = []
        for node in self.graph.node:
            nodes += self.replaced.get(id(node), [node])
        used = {name for node in nodes for name in node.input} | self.outputs
        _replace_nodes(self.graph, nodes)
        del self.graph.initializer[:]
        self.graph.initializer.extend(tensor for name, tensor in self.constants.items() if name in used)


def to_bytes(model: ModelProto) -> bytes:
    """Return a graph in its form on disk, after checking it."""
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data
