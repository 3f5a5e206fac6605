"""Takes the few very large channels out of the inputs of products, before these are rounded to 8 bits.

One scale serves a whole input, so a single channel that is twenty times as large as the others costs them four of
their eight bits. Dividing that channel by a number and multiplying the weights that read it by the same number changes
nothing in exact arithmetic, and gives the others their bits back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from treepiece.ort import ort

Floats = npt.NDArray[np.float32]
Feeds = Mapping[str, npt.NDArray[np.generic]]

_LARGE = 6.0
"""A channel is an outlier if its largest value is more than so many times the median of all channels."""


def tame_outliers(model: ModelProto, examples: Sequence[Feeds]) -> ModelProto:
    """Return a graph that computes the same with smaller inputs to its products; the given one is not changed.

    How large inputs get is seen on the examples.
    """
    result = ModelProto()
    result.CopyFrom(model)
    weights = {tensor.name: tensor for tensor in result.graph.initializer}
    products = [node for node in result.graph.node if _is_product(node, weights)]
    largest = channel_maxima(model, [node.input[0] for node in products], examples)
    scales = {name: factors for name, values in largest.items() if (factors := outlier_factors(values)) is not None}
    for node in products:
        factors = scales.get(node.input[0])
        if factors is not None:
            tensor = weights[node.input[1]]
            values = numpy_helper.to_array(tensor)
            scaled = values * (factors if _is_transposed(node) else factors[:, np.newaxis])
            tensor.CopyFrom(numpy_helper.from_array(scaled.astype(np.float32), tensor.name))
    _divide(result, products, scales)
    return result


def outlier_factors(largest: Floats) -> Floats | None:
    """Return by what to divide each channel, given its largest value; None where there is no outlier.

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
    open_model = ModelProto()
    open_model.CopyFrom(model)
    outputs = {output.name for output in model.graph.output}
    wanted = sorted(set(names))
    open_model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in wanted if name not in outputs)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(open_model.SerializeToString(), options, providers=["CPUExecutionProvider"])
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


def _divide(model: ModelProto, products: Sequence[NodeProto], scales: Mapping[str, Floats]) -> None:
    """Put a division before each product whose weights were scaled; products of one input share it."""
    for node in products:
        if node.input[0] in scales:
            node.input[0] = f"{node.input[0]}.tamed"
    nodes: list[NodeProto] = []
    made: set[str] = set()
    for node in model.graph.node:
        for name in node.input:
            source = name.removesuffix(".tamed")
            if source in scales and name != source and name not in made:
                made.add(name)
                model.graph.initializer.append(numpy_helper.from_array(1 / scales[source], f"{name}.by"))
                nodes.append(helper.make_node("Mul", [source, f"{name}.by"], [name]))
        nodes.append(node)
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend(nodes)
